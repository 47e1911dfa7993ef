"""The command line: parse, call one function, report, exit."""
