//! Selects the Kubernetes release to imitate: its CEL versions and costs, the formats that it checks, and its ratcheting of updates.
//!
//! A server imitates one release all the time; only a comparison of releases selects another one, for the work inside [`following`]. A
//! compiled expression keeps the language and costs of the release under which it was compiled.

use std::cell::Cell;

use admit_cel::Version;

/// The release that is imitated by default.
pub const FOLLOWED: Version = Version(1, 36);

/// Definitions may let a rule see an absent old value, and updates leave invalid values as they are (apiextensions-apiserver
/// `pkg/features/kube_features.go`, `CRDValidationRatcheting`: on from 1.30).
const RATCHETING: Version = Version(1, 30);
/// From 1.32 on, policies and match conditions pay the cost of Kubernetes' own libraries (apiserver `pkg/features/kube_features.go`,
/// `StrictCostEnforcementForVAP`).
const STRICT_COSTS: Version = Version(1, 32);
/// `k8s-short-name` and `k8s-long-name` have compatibility version 1.34 (apiextensions-apiserver
/// `pkg/apiserver/validation/formats.go`), which applies from the next release on.
const NAME_FORMATS: Version = Version(1, 35);
/// Estimates know how long a name may be (apiextensions-apiserver v0.37.0-beta.0 `pkg/apiserver/schema/cel/model/schemas.go`).
const BOUNDED_NAMES: Version = Version(1, 37);

thread_local! {
    static ASKED: Cell<Version> = const { Cell::new(FOLLOWED) };
}

/// Runs `work` as a server of `release` would: on this thread, it compiles, estimates, validates and evaluates under that release.
///
/// ```
/// use admit_cel::Version;
/// use admit_policy::{evaluate, release};
///
/// assert_eq!(release::followed(), release::FOLLOWED);
/// assert_eq!(release::following(Version(1, 30), release::followed), Version(1, 30));
/// let checks = || evaluate("isIP('10.0.0.1')", &[]).is_ok();
/// assert!(!release::following(Version(1, 30), checks) && release::following(Version(1, 31), checks) && checks());
/// ```
pub fn following<T>(release: Version, work: impl FnOnce() -> T) -> T {
    /// Restores the previous release, however the work ends.
    struct Before(Version);
    impl Drop for Before {
        fn drop(&mut self) {
            ASKED.set(self.0);
        }
    }
    let _before = Before(ASKED.replace(release));
    work()
}

/// Returns the release that this thread imitates; [`following`] selects another.
pub fn followed() -> Version {
    ASKED.get()
}

pub(crate) fn ratchets() -> bool {
    followed() >= RATCHETING
}

pub(crate) fn counts_libraries_in_policies() -> bool {
    followed() >= STRICT_COSTS
}

pub(crate) fn checks_name_formats() -> bool {
    followed() >= NAME_FORMATS
}

pub(crate) fn bounds_names() -> bool {
    followed() >= BOUNDED_NAMES
}
