//! Evaluates CEL expressions that select devices for dynamic resource allocation (resource.k8s.io).
//!
//! | part | decides |
//! |---|---|
//! | `error` | why an expression selects nothing |
//! | `features` | which gates are on |
//! | `language` | what selectors may use, and what is wrong with one |
//! | `device` | which devices a ResourceSlice has, and how expressions see one |
//! | `selectors` | which selectors a document holds, and what a server says of them |
//! | `select` | which devices a class or a claim selects |
//!
//! Read from k8s.io/dynamic-resource-allocation of Kubernetes 1.36. Attributes that are derived from others are none of this
//! release.

mod device;
mod error;
mod features;
mod language;
mod select;
mod selectors;

pub use self::device::Device;
pub use self::error::{DeviceError, MemberError, SelectionError, SelectorError};
pub use self::features::DeviceFeatures;
pub use self::language::{SELECTOR_LIMIT, Selector, SelectorProblem, selector_problem};
pub use self::select::{Devices, NoSelection, Selected, SelectedBy};
pub(crate) use self::selectors::selector_errors;
pub use self::selectors::{device_selectors, selector_cost, selector_env};
use crate::request::GroupVersionKind;

/// Whether objects of the kind are devices, or select some.
pub(crate) fn is_read(kind: &GroupVersionKind) -> bool {
    let kinds = ["ResourceSlice", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate"];
    kind.group == "resource.k8s.io" && kinds.contains(&kind.kind.as_str())
}
