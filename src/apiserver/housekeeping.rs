//! The controllers of kube-controller-manager that this server can run itself, by the names that they have there.

use std::collections::BTreeSet;
use std::fmt;

/// Each by its name, and the other names by which kube-controller-manager or people know it.
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

/// Which controllers run beside a server: the end of namespaces, the garbage collector, default accounts and so on. A bare
/// kube-apiserver has none.
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

/// No controller of this name can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownController(String);

impl Controllers {
    /// None, as kube-apiserver alone.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// All that this server has.
    #[must_use]
    pub fn all() -> Self {
        Self(KNOWN.iter().map(|(name, _)| *name).collect())
    }

    /// Those of these names; `*` stands for all.
    ///
    /// # Errors
    /// For a name of none that this server has.
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

    /// Whether the controller of this name runs, by its whole name.
    #[must_use]
    pub fn runs(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Whether none runs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Controllers {
    /// The names, with commas between them.
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
