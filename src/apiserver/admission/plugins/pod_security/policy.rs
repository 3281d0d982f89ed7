//! What the labels of a namespace ask for.

use std::fmt;

use serde_json::Value;

use crate::object;
use crate::status::Cause;

const PREFIX: &str = "pod-security.kubernetes.io/";

/// From the least strict to the strictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Privileged,
    Baseline,
    Restricted,
}

/// The minor version of Kubernetes whose standards count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    Minor(u32),
    Latest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LevelVersion {
    pub(super) level: Level,
    pub(super) version: Version,
}

/// What is enforced, what is written to the audit log, and what users are warned of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) enforce: LevelVersion,
    pub(super) audit: LevelVersion,
    pub(super) warn: LevelVersion,
}

impl Policy {
    /// The policy of a namespace, and what is wrong with its labels. There is one, whatever is wrong: what is to be
    /// enforced is then as strict as can be.
    pub(super) fn of(namespace: &Value) -> (Self, Vec<Cause>) {
        let mut causes = Vec::new();
        let mut mode = |name: &str, otherwise: Level| {
            let level = label(namespace, name).map(|text| {
                let wrong = "must be one of privileged, baseline, restricted";
                Level::parse(text).ok_or_else(|| causes.push(invalid(name, text, wrong)))
            });
            let version = format!("{name}-version");
            let asked = label(namespace, &version).map(|text| {
                let wrong = "must be \"latest\" or \"v1.x\"";
                Version::parse(text).ok_or_else(|| causes.push(invalid(&version, text, wrong)))
            });
            Mode { level, version: asked, otherwise }
        };
        let enforce = mode("enforce", Level::Restricted);
        let audit = mode("audit", Level::Privileged);
        let warn = mode("warn", Level::Privileged);
        let mut policy = Self { enforce: enforce.get(), audit: audit.get(), warn: warn.get() };
        // Who is refused is warned beforehand, also of what makes pods.
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

    pub(super) fn is_privileged(&self) -> bool {
        [self.enforce, self.audit, self.warn].iter().all(|mode| mode.level == Level::Privileged)
    }
}

/// The labels of one mode, as far as there are any: what they say, or that they cannot be understood.
struct Mode {
    level: Option<Result<Level, ()>>,
    version: Option<Result<Version, ()>>,
    /// The level in place of one that cannot be understood.
    otherwise: Level,
}

impl Mode {
    fn get(&self) -> LevelVersion {
        let level = self.level.map_or(Level::Privileged, |level| level.unwrap_or(self.otherwise));
        let version = self.version.map_or(Version::Latest, |version| version.unwrap_or(Version::Latest));
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
    fn parse(text: &str) -> Option<Self> {
        match text {
            "privileged" => Some(Self::Privileged),
            "baseline" => Some(Self::Baseline),
            "restricted" => Some(Self::Restricted),
            _ => None,
        }
    }
}

impl Version {
    fn parse(text: &str) -> Option<Self> {
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
