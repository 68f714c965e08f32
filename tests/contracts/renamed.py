"""Types of transformers under other names: what a type of tomorrow is that is built from parts of today's.

The sources of a type are copied to a package, where classes, files and the type have names that nothing in Mote knows.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import transformers
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_MAPPING

from tests.contracts.architectures import Row, find

MODELS = Path(transformers.__file__).parent / "models"


def _moved(source: str, folder: str, name: str) -> str:
    """A file of models/<folder>, outside of transformers and under another name."""
    source = re.sub(rf"\b(configuration|modeling)_{folder}\b", rf"\1_{name}", source)
    source = re.sub(rf"([\"']){folder}(?=[\"'_])", rf"\1{name}", source)
    source = re.sub(r"\bfrom \.\.\.(?=\w)", "from transformers.", source)
    source = re.sub(r"\bfrom \.\.\. import", "from transformers import", source)
    return re.sub(r"\bfrom \.\.(?=\w)", "from transformers.models.", source)


def _prefix(folder: str) -> str:
    source = (MODELS / folder / f"configuration_{folder}.py").read_text()
    return re.findall(r"class (\w+?)(?:Text)?Config\(", source)[0]


def register(model_type: str, name: str, packages: Path, monkeypatch) -> Row:
    """Makes a copy of a type known to transformers as `name`, until the test ends. Returns its row."""
    config = CONFIG_MAPPING[model_type]
    model, base = MODEL_FOR_CAUSAL_LM_MAPPING[config], MODEL_MAPPING[config]
    folder = config.__module__.split(".")[-2]
    package = packages / f"package_of_{name}"
    package.mkdir()
    (package / "__init__.py").touch()
    old, new = _prefix(folder), name.capitalize()
    for kind in ("configuration", "modeling"):
        source = (MODELS / folder / f"{kind}_{folder}.py").read_text()
        source = _moved(source.replace(old, new), folder, name)
        (package / f"{kind}_{name}.py").write_text(source)
    monkeypatch.syspath_prepend(packages)
    modules = [importlib.import_module(f"{package.name}.{kind}_{name}") for kind in ("configuration", "modeling")]
    new_config = getattr(modules[0], config.__name__.replace(old, new))
    new_type = new_config.model_type
    assert new_type not in CONFIG_MAPPING and new_type.startswith(name)
    for mapping in (CONFIG_MAPPING, MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_MAPPING):
        monkeypatch.setattr(mapping, "_extra_content", dict(mapping._extra_content))
    names = transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    monkeypatch.setitem(names, new_type, model.__name__.replace(old, new))
    AutoConfig.register(new_type, new_config)
    AutoModelForCausalLM.register(new_config, getattr(modules[1], model.__name__.replace(old, new)))
    AutoModel.register(new_config, getattr(modules[1], base.__name__.replace(old, new)))
    return Row(new_type, find(model_type).arguments)
