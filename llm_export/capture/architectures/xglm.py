"""XGLM computes attention itself and never calls the attention interface."""

from __future__ import annotations

from transformers.models.xglm.modeling_xglm import XGLMAttention


def patch(model, context) -> None:
    for module in model.modules():
        if isinstance(module, XGLMAttention):
            module.forward = _forward(module, context)


def _forward(module: XGLMAttention, context):
    def forward(hidden_states, **kwargs):
        projections = (module.q_proj, module.k_proj, module.v_proj)
        heads = (
            projection(hidden_states).unflatten(-1, (module.num_heads, module.head_dim)).transpose(1, 2)
            for projection in projections
        )
        output = context.attention(module, *heads, scale=module.scaling)
        return module.out_proj(output.flatten(2)), None

    return forward
