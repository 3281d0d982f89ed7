//! What several subjects stand on.

pub(crate) mod canaries;
pub(crate) mod cluster;
pub(crate) mod connect;
pub(crate) mod crashes;
pub(crate) mod https;
pub(crate) mod json_schema;
pub(crate) mod leaders;
pub(crate) mod logs;
pub(crate) mod postgres;
pub(crate) mod refusing;
pub(crate) mod relay;
pub(crate) mod reliability;
pub(crate) mod rights;
pub(crate) mod shipped;
pub(crate) mod sshd;
pub(crate) mod testcluster;
pub(crate) mod webdriver;
