//! Declares the fields of the built-in kinds, and derives everything else from these declarations.
//!
//! One line of `tables/*.txt` per field (number, name, type, patch and list rules, description) is the only place where
//! a field of a built-in kind is declared. From it come the OpenAPI schemas, strict decoding, the order and omission
//! rules of the encoder, the keys of strategic merge, the reading and writing of protobuf bodies, and (in `cel_types`)
//! the types that expressions are checked against.

mod alike;
mod binary;
pub mod decode;
pub(crate) mod encode;
mod go_names;
mod internal;
mod model;
mod parse;
pub mod protobuf;
mod restore;
mod scalar;

use std::sync::LazyLock;

pub(crate) use binary::through_store;
pub(crate) use internal::internal;
pub use model::{
    EnumDef, EnumId, Field, ListType, Package, PatchStrategy, RawKind, Tables, TypeDef, TypeId, TypeRef,
    Union,
};
pub(crate) use restore::restore;

static TEXTS: [&str; 28] = [
    include_str!("tables/meta.txt"),
    include_str!("tables/core.txt"),
    include_str!("tables/core-pods.txt"),
    include_str!("tables/core-volumes.txt"),
    include_str!("tables/apps.txt"),
    include_str!("tables/batch.txt"),
    include_str!("tables/events.txt"),
    include_str!("tables/coordination.txt"),
    include_str!("tables/apiextensions.txt"),
    include_str!("tables/admissionregistration.txt"),
    include_str!("tables/networking.txt"),
    include_str!("tables/policy.txt"),
    include_str!("tables/storage.txt"),
    include_str!("tables/rbac.txt"),
    include_str!("tables/certificates.txt"),
    include_str!("tables/authorization.txt"),
    include_str!("tables/authentication.txt"),
    include_str!("tables/autoscaling.txt"),
    include_str!("tables/autoscaling2.txt"),
    include_str!("tables/apiregistration.txt"),
    include_str!("tables/core-controllers.txt"),
    include_str!("tables/core-persistent.txt"),
    include_str!("tables/discovery.txt"),
    include_str!("tables/apidiscovery.txt"),
    include_str!("tables/flowcontrol.txt"),
    include_str!("tables/node.txt"),
    include_str!("tables/resource.txt"),
    include_str!("tables/scheduling.txt"),
];

static TABLES: LazyLock<(Tables, Vec<String>)> = LazyLock::new(|| parse::parse(&TEXTS));

/// All field tables, parsed at first use.
#[must_use]
pub fn tables() -> &'static Tables {
    &TABLES.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_tables_is_understood() {
        assert_eq!(TABLES.1, Vec::<String>::new());
        let job = tables().kind("batch", "v1", "Job").expect("the Job kind");
        assert_eq!(tables().get(job).openapi_name(), "io.k8s.api.batch.v1.Job");
    }
}
