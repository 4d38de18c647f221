"""The project package: settings and wiring on top, and the modules that every app shares."""
