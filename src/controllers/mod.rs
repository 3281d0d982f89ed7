//! Controllers of the systems whose objects admit guards, on a shared kit.
