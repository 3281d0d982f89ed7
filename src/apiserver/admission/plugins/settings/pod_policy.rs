//! Determines the Pod Security Standards of a namespace from its labels and the defaults.

use std::fmt;

use serde_json::Value;

use crate::object;
use crate::status::Cause;

const PREFIX: &str = "pod-security.kubernetes.io/";

/// A Pod Security Standard, from the least to the most strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::admission::plugins) enum Level {
    Privileged,
    Baseline,
    Restricted,
}

/// The Kubernetes minor version whose definition of the standards applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::admission::plugins) enum Version {
    Minor(u32),
    Latest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::admission::plugins) struct LevelVersion {
    pub(in crate::admission::plugins) level: Level,
    pub(in crate::admission::plugins) version: Version,
}

impl Default for LevelVersion {
    fn default() -> Self {
        Self { level: Level::Privileged, version: Version::Latest }
    }
}

/// The levels to enforce, to record in the audit log, and to warn of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::admission::plugins) struct Policy {
    pub(in crate::admission::plugins) enforce: LevelVersion,
    pub(in crate::admission::plugins) audit: LevelVersion,
    pub(in crate::admission::plugins) warn: LevelVersion,
}

impl Policy {
    /// Returns the policy of a namespace, and the errors of its labels. Defaults replace missing labels; an invalid
    /// `enforce` label counts as `restricted`.
    pub(in crate::admission::plugins) fn of(namespace: &Value, set: &Self) -> (Self, Vec<Cause>) {
        let mut causes = Vec::new();
        let mut mode = |name: &str, otherwise: Level, set: LevelVersion| {
            let level = label(namespace, name).map(|text| {
                Level::parse(text).ok_or_else(|| causes.push(invalid(name, text, Level::WANTED)))
            });
            let version = format!("{name}-version");
            let asked = label(namespace, &version).map(|text| {
                Version::parse(text).ok_or_else(|| causes.push(invalid(&version, text, Version::WANTED)))
            });
            Mode { level, version: asked, otherwise, set }
        };
        let enforce = mode("enforce", Level::Restricted, set.enforce);
        let audit = mode("audit", Level::Privileged, set.audit);
        let warn = mode("warn", Level::Privileged, set.warn);
        let mut policy = Self { enforce: enforce.get(), audit: audit.get(), warn: warn.get() };
        // The enforced level is warned of as well, since workloads that create pods are not refused.
        if let (None, Some(Ok(level))) = (&warn.level, enforce.level)
            && level > policy.warn.level
        {
            policy.warn.level = level;
            if warn.version.is_none() {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, causes)
    }

    /// Formats the modes that labels set to more than `privileged`, as `enforce=baseline:latest, …`.
    pub(in crate::admission::plugins) fn labelled(&self, namespace: &Value) -> String {
        let modes = [("enforce", self.enforce), ("audit", self.audit), ("warn", self.warn)];
        let labelled = modes.into_iter().filter(|(name, mode)| {
            let says = |name: &str| label(namespace, name).is_some();
            mode.level != Level::Privileged && (says(name) || says(&format!("{name}-version")))
        });
        labelled.map(|(name, mode)| format!("{name}={mode}")).collect::<Vec<_>>().join(", ")
    }

    pub(in crate::admission::plugins) fn is_privileged(&self) -> bool {
        [self.enforce, self.audit, self.warn].iter().all(|mode| mode.level == Level::Privileged)
    }
}

/// The labels of one mode, if any: their values, or that they are invalid.
struct Mode {
    level: Option<Result<Level, ()>>,
    version: Option<Result<Version, ()>>,
    /// The level if the label is invalid.
    otherwise: Level,
    /// The default without labels.
    set: LevelVersion,
}

impl Mode {
    fn get(&self) -> LevelVersion {
        let level = self.level.map_or(self.set.level, |level| level.unwrap_or(self.otherwise));
        let version = self.version.map_or(self.set.version, |version| version.unwrap_or(Version::Latest));
        LevelVersion { level, version }
    }
}

fn label<'o>(namespace: &'o Value, name: &str) -> Option<&'o str> {
    object::label(namespace, &format!("{PREFIX}{name}"))
}

fn invalid(name: &str, value: &str, why: &str) -> Cause {
    Cause::invalid(format!("metadata.labels[{PREFIX}{name}]"), &value.into(), why)
}

impl Level {
    pub(super) const WANTED: &str = "must be one of privileged, baseline, restricted";

    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "privileged" => Some(Self::Privileged),
            "baseline" => Some(Self::Baseline),
            "restricted" => Some(Self::Restricted),
            _ => None,
        }
    }
}

impl Version {
    pub(super) const WANTED: &str = "must be \"latest\" or \"v1.x\"";

    pub(super) fn parse(text: &str) -> Option<Self> {
        if text == "latest" {
            return Some(Self::Latest);
        }
        let minor = text.strip_prefix("v1.")?;
        let is_number =
            minor.bytes().all(|byte| byte.is_ascii_digit()) && (minor == "0" || !minor.starts_with('0'));
        let minor = minor.parse().ok()?;
        is_number.then_some(Self::Minor(minor))
    }
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        match self.version {
            Version::Latest => write!(f, "{level}:latest"),
            Version::Minor(minor) => write!(f, "{level}:v1.{minor}"),
        }
    }
}
