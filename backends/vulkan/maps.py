"""Functions of elements, in the order of shaders/map.comp. A name that ends in _int or _bool is of such operands."""

FLOAT_UNARY = (
    "neg", "abs", "exp", "log", "sqrt", "rsqrt", "reciprocal", "sin", "cos", "tanh", "sigmoid", "silu", "relu",
    "floor", "ceil", "round", "sign", "square", "gelu", "gelu_tanh", "softplus", "expm1", "log1p", "log2", "erf",
    "clamp", "leaky_relu", "elu",
)  # fmt: skip
OTHER_UNARY = (
    "isnan", "neg_int", "abs_int", "logical_not_bool", "int_to_float", "float_to_int", "float_to_bool", "int_to_bool",
)  # fmt: skip
FLOAT_BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "pow", "remainder", "fmod", "floor_divide")
INT_BINARY = ("add", "sub", "mul", "maximum", "minimum", "remainder", "floor_divide")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
LOGICAL = ("logical_and", "logical_or", "logical_xor")
GATED = ("silu", "gelu", "gelu_tanh", "relu", "sigmoid", "relu_squared", "identity")  # function(a) * b

UNARY = ("copy", *FLOAT_UNARY, *OTHER_UNARY)
BINARY = (
    *FLOAT_BINARY, *COMPARISONS, *(f"{name}_int" for name in (*INT_BINARY, *COMPARISONS)),
    *(f"{name}_bool" for name in LOGICAL), *(f"gated_{name}" for name in GATED), "gated_alpha",
)  # fmt: skip
FUNCTIONS = (*UNARY, *BINARY, "where", "fill", "fill_int", "softcap")
