"""Functions of elements, in the order of shaders/map.comp."""

UNARY = (
    "copy", "neg", "abs", "exp", "log", "sqrt", "rsqrt", "reciprocal", "sin", "cos", "tanh", "sigmoid", "silu", "relu",
    "floor", "ceil", "round", "sign", "square", "gelu", "gelu_tanh", "softplus",
)  # fmt: skip
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum")
FUNCTIONS = (*UNARY, *BINARY)
