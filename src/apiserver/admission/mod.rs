//! Validating admission: stored policies and webhooks that may refuse a write after it was found valid.

mod review;

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;

pub use review::{Operation, Review};

use crate::registry::Registry;
use crate::status::Refusal;

/// Where the webhooks' services are.
pub trait Resolver: Debug + Send + Sync {
    /// The address of a port of a Service; None when there is none.
    fn resolve(&self, namespace: &str, service: &str, port: u16) -> Option<SocketAddr>;
}

/// What the admission of a server needs beside the registry.
#[derive(Debug)]
pub struct Admission {
    #[expect(dead_code, reason = "webhooks ask it")]
    resolver: Option<Arc<dyn Resolver>>,
}

impl Admission {
    #[must_use]
    pub fn new(resolver: Option<Arc<dyn Resolver>>) -> Self {
        Self { resolver }
    }
}

impl Registry {
    /// # Errors
    /// The refusal of whoever refuses first.
    pub(crate) async fn admit(&self, review: &Review<'_>) -> Result<(), Refusal> {
        let _ = review;
        Ok(())
    }
}
