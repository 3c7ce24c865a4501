"""The command line: one file a noun, each loaded when it is called. It talks to Redis through the clients alone."""
