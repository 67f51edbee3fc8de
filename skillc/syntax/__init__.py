"""The text of a program: tokens, parser, syntax tree, mistakes of syntax, formatter."""
