"""The program file: its types, writer and reader."""
