//! An embedded Kubernetes API server: a tower service over a versioned store.
//!
//! ```text
//! router / TLS ──► http ──► codec ──► registry ──► admission ──► store ──► redb
//!                   │                  │  ▲                        │
//!                   │                  │  └──────── watches ◄──────┘
//!                   │                  └── conversion, admission ──► callout ──► webhooks of others
//!                   └── discovery, OpenAPI, Tables read resources::ResourceTable
//! ```

pub mod admission;
mod authentication;
mod authorization;
pub mod builtin;
mod callout;
mod certificate;
mod clock;
mod codec;
mod conversion;
mod digest;
pub mod discovery;
mod http;
pub mod identity;
mod interrupt;
mod logs;
pub mod managed_fields;
mod object;
pub mod openapi;
pub mod patch;
pub mod registry;
pub mod resources;
mod server;
pub mod status;
pub mod store;
pub mod table;
mod validation;

pub use authentication::{TokenKey, TokenKeyError};
pub use clock::Clock;
pub use http::serve::serve as serve_router;
pub use identity::Identity;
pub use logs::{LogError, LogOptions, LogStream, PodLogs};
pub use registry::FromFile;
pub use server::{Server, ServerBuilder};
