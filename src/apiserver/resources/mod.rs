//! The served resources: one [`ResourceInfo`] row per resource, built in or defined by a CRD. Discovery, OpenAPI,
//! Tables and the registry all read these rows, so that they cannot disagree.

mod builtin;
mod info;
mod table;

pub use builtin::builtin_rows;
pub(crate) use info::{
    Asked, BINDING, EVICTION, OwnKind, RESET_FOR_STATUS, SCALE, TOKEN_REQUEST, go_package,
};
pub use info::{PrinterColumn, ResourceInfo, Scope, Subresource};
pub use table::ResourceTable;
