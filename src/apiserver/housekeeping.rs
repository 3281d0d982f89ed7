//! Names the controllers of kube-controller-manager that this server can run itself.

use std::collections::BTreeSet;
use std::fmt;

/// The controllers by name, with their aliases in kube-controller-manager and common short names.
const KNOWN: [(&str, &[&str]); 6] = [
    ("namespace-controller", &["namespace"]),
    ("garbage-collector-controller", &["garbage-collector", "garbagecollector"]),
    ("serviceaccount-controller", &["serviceaccount"]),
    (
        "root-ca-certificate-publisher-controller",
        &["root-ca-certificate-publisher", "root-ca-cert-publisher"],
    ),
    ("resourcequota-controller", &["resourcequota"]),
    ("validatingadmissionpolicy-status-controller", &["validatingadmissionpolicy-status"]),
];
pub(crate) const NAMESPACES: &str = KNOWN[0].0;
pub(crate) const GARBAGE: &str = KNOWN[1].0;
pub(crate) const ACCOUNTS: &str = KNOWN[2].0;
pub(crate) const ROOT_CA: &str = KNOWN[3].0;
pub(crate) const QUOTAS: &str = KNOWN[4].0;
pub(crate) const POLICY_STATUSES: &str = KNOWN[5].0;

/// A selection of controllers that run beside a server: namespace deletion, garbage collection, default accounts and so on. A
/// bare kube-apiserver has none.
///
/// ```
/// use admit_apiserver::Controllers;
///
/// let some = Controllers::named(["namespace", "garbage-collector-controller"]).unwrap();
/// assert!(some.runs("namespace-controller") && !some.runs("serviceaccount-controller"));
/// assert!(Controllers::named(["deployment"]).is_err());
/// assert_eq!(Controllers::named(["*"]).unwrap(), Controllers::all());
/// assert!(Controllers::none().is_empty(), "as kube-apiserver alone");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Controllers(BTreeSet<&'static str>);

/// The error for an unknown controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownController(String);

impl Controllers {
    /// Selects no controller, as kube-apiserver alone.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Selects all controllers that this server has.
    #[must_use]
    pub fn all() -> Self {
        Self(KNOWN.iter().map(|(name, _)| *name).collect())
    }

    /// Selects the controllers of these names; `*` stands for all.
    ///
    /// # Errors
    /// If a name is unknown.
    pub fn named<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Result<Self, UnknownController> {
        let mut chosen = BTreeSet::new();
        for name in names {
            let name = name.as_ref();
            if name == "*" {
                chosen.extend(Self::all().0);
                continue;
            }
            let is_meant = |(known, others): &&(&str, &[&str])| *known == name || others.contains(&name);
            let found = KNOWN.iter().find(is_meant).ok_or_else(|| UnknownController(name.to_owned()))?;
            chosen.insert(found.0);
        }
        Ok(Self(chosen))
    }

    /// Returns whether the controller of this full name is selected.
    #[must_use]
    pub fn runs(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Returns whether none is selected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Controllers {
    /// Formats the names, joined with commas.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().copied().collect::<Vec<_>>().join(","))
    }
}

impl fmt::Display for UnknownController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "\"{}\" is not in the list of known controllers: {}; others of a cluster run in a real kube-controller-manager",
            self.0,
            Controllers::all()
        )
    }
}

impl std::error::Error for UnknownController {}
