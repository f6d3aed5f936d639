"""One reader a raw format; each takes files and returns a `Dataset`, and trusts nothing that it reads."""
