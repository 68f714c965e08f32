"""Two runs side by side: which value of one is which of the other, how far they are apart, and where the time goes."""
