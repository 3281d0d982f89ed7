//! Gatherers, archive, obfuscation and upload: what a data gathering collects and where it goes.
