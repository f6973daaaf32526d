// Nothing is called by name: the library replaces functions of the C library in the process that preloads it.
