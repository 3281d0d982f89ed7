//! Selects the admission plugins that run, and runs them.

use std::collections::BTreeSet;
use std::fmt;

use admit_apimachinery::go;
use admit_policy::webhook::Kind;

use super::settings::{AdmissionConfiguration, Settings, SettingsError, WebhookUsers};
use super::{CHAIN, Link, Live, OFF_BY_DEFAULT, Request, resource_quota};
use crate::status::Refusal;

/// Plugins that are on by default and implemented in other modules.
const ELSEWHERE: [&str; 5] =
    [MUTATING_POLICIES, MUTATING_WEBHOOKS, VALIDATING_POLICIES, VALIDATING_WEBHOOKS, resource_quota::PLUGIN];
pub(in crate::admission) const MUTATING_POLICIES: &str = "MutatingAdmissionPolicy";
pub(in crate::admission) const MUTATING_WEBHOOKS: &str = "MutatingAdmissionWebhook";
pub(in crate::admission) const VALIDATING_POLICIES: &str = "ValidatingAdmissionPolicy";
pub(in crate::admission) const VALIDATING_WEBHOOKS: &str = "ValidatingAdmissionWebhook";

/// Plugins that are on but do nothing: they serve features that are off in 1.36 by default, and cannot be turned on
/// here.
const IDLE: [&str; 3] = ["JobValidation", "PodGroupProtection", "PodGroupWorkloadExists"];

/// Names the admission plugins that a server runs: those that are on by default in kube-apiserver, without disabled ones, plus
/// enabled ones.
///
/// ```
/// use admit_apiserver::AdmissionPlugins;
///
/// // As envtest starts a server: Pods need no ServiceAccount.
/// let plugins = AdmissionPlugins::new([""; 0], ["ServiceAccount"]).unwrap();
/// assert!(!plugins.is_enabled("ServiceAccount") && plugins.is_enabled("Priority"));
/// assert!(AdmissionPlugins::new([""; 0], ["ServiceAcount"]).is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdmissionPlugins {
    enabled: BTreeSet<&'static str>,
    disabled: BTreeSet<&'static str>,
    settings: Settings,
}

/// Says why a selection of plugins is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginError {
    /// The option names an unknown plugin.
    Unknown { option: &'static str, name: String },
    /// The names are both enabled and disabled.
    Overlapped(Vec<String>),
    /// The plugin cannot run without a cluster.
    NeedsCluster(String),
    /// The plugin's section is invalid, or is required and missing.
    Settings { plugin: &'static str, error: SettingsError },
}

impl AdmissionPlugins {
    /// Selects the plugins that are on by default, plus `enabled` and without `disabled` ones, as the options
    /// `--enable-admission-plugins` and `--disable-admission-plugins` of kube-apiserver do.
    ///
    /// # Errors
    /// If a name is unknown or in both lists, or a plugin needs
    /// [settings](AdmissionConfiguration).
    pub fn new<E, D>(
        enabled: impl IntoIterator<Item = E>,
        disabled: impl IntoIterator<Item = D>,
    ) -> Result<Self, PluginError>
    where
        E: AsRef<str>,
        D: AsRef<str>,
    {
        Self::configured(enabled, disabled, &AdmissionConfiguration::default())
    }

    /// Like [`Self::new`], with the settings of kube-apiserver's `--admission-control-config-file`. [`AdmissionConfiguration`] has an
    /// example.
    ///
    /// # Errors
    /// Those of [`Self::new`], and invalid settings.
    pub fn configured<E, D>(
        enabled: impl IntoIterator<Item = E>,
        disabled: impl IntoIterator<Item = D>,
        configuration: &AdmissionConfiguration,
    ) -> Result<Self, PluginError>
    where
        E: AsRef<str>,
        D: AsRef<str>,
    {
        let enabled = known("enable-admission-plugins", enabled)?;
        let disabled = known("disable-admission-plugins", disabled)?;
        let both: Vec<String> = enabled.intersection(&disabled).map(|&name| name.to_owned()).collect();
        if !both.is_empty() {
            return Err(PluginError::Overlapped(both));
        }
        let enabled = enabled.into_iter().filter(|name| OFF_BY_DEFAULT.contains(name)).collect();
        let mut plugins = Self { enabled, disabled, settings: Settings::default() };
        plugins.settings = Settings::read(configuration, |name| plugins.is_enabled(name))
            .map_err(|(plugin, error)| PluginError::Settings { plugin, error })?;
        Ok(plugins)
    }

    /// Returns the plugins' settings with empty state.
    pub(in crate::admission) fn live(&self) -> Live {
        Live::new(self.settings.clone())
    }

    /// Returns the credentials that this server presents to webhooks of this kind.
    pub(in crate::admission) const fn webhook_users(&self, kind: Kind) -> &WebhookUsers {
        match kind {
            Kind::Mutating => &self.settings.mutating_users,
            Kind::Validating => &self.settings.validating_users,
        }
    }

    /// Returns whether the plugin of this name runs.
    #[must_use]
    pub fn is_enabled(&self, name: &str) -> bool {
        run().any(|known| known == name) && self.is_chosen(name)
    }

    /// Returns whether a known plugin runs.
    fn is_chosen(&self, name: &str) -> bool {
        !self.disabled.contains(name) && (!OFF_BY_DEFAULT.contains(&name) || self.enabled.contains(name))
    }

    fn enabled(&self) -> impl Iterator<Item = &'static Link> {
        CHAIN.iter().filter(|link| self.is_chosen(link.name()))
    }

    /// Runs the mutating phase of each enabled plugin.
    pub(in crate::admission) async fn mutate(&self, request: &mut Request<'_>) -> Result<(), Refusal> {
        for link in self.enabled() {
            match link {
                Link::Now(plugin) => plugin.mutate.map_or(Ok(()), |mutate| mutate(request))?,
                Link::Mutating(waiting) => (waiting.ask)(request).await?,
                Link::Validating(_) => {}
            }
        }
        Ok(())
    }

    /// Runs the validating phase of each enabled plugin.
    pub(in crate::admission) async fn validate(&self, request: &Request<'_>) -> Result<(), Refusal> {
        for link in self.enabled() {
            match link {
                Link::Now(plugin) => plugin.validate.map_or(Ok(()), |validate| validate(request))?,
                Link::Mutating(_) => {}
                Link::Validating(waiting) => (waiting.ask)(request).await?,
            }
        }
        Ok(())
    }
}

/// Returns the names of all known plugins.
fn run() -> impl Iterator<Item = &'static str> {
    CHAIN.iter().map(Link::name).chain(ELSEWHERE).chain(IDLE)
}

fn known<N: AsRef<str>>(
    option: &'static str,
    names: impl IntoIterator<Item = N>,
) -> Result<BTreeSet<&'static str>, PluginError> {
    let found = names.into_iter().map(|name| {
        let name = name.as_ref();
        run()
            .find(|known| *known == name)
            .ok_or_else(|| PluginError::Unknown { option, name: name.to_owned() })
    });
    found.collect()
}

impl fmt::Display for PluginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { option, name } => {
                write!(f, "{option} plugin {} is unknown", go::quote(name))?;
            }
            Self::Overlapped(names) => {
                let names = names.join(" ");
                return write!(
                    f,
                    "[{names}] in enable-admission-plugins and disable-admission-plugins overlapped"
                );
            }
            Self::Settings { plugin, error } => {
                return write!(
                    f,
                    "admission-control-config-file: plugin {} cannot be set up: {error}",
                    go::quote(plugin)
                );
            }
            Self::NeedsCluster(name) => {
                return write!(
                    f,
                    "plugin {} cannot be turned on or off here: it is of use in a server alone",
                    go::quote(name)
                );
            }
        }
        write!(
            f,
            "; those that it has: {}",
            run().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
        )
    }
}

impl std::error::Error for PluginError {}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [&str; 0] = [];

    #[test]
    fn plugins_are_named_as_kube_apiserver_names_them() {
        let chosen = AdmissionPlugins::new(["Priority"], ["ServiceAccount", "NodeRestriction"]).unwrap();
        assert!(chosen.is_enabled("Priority") && chosen.is_enabled("ValidatingAdmissionWebhook"));
        assert!(!chosen.is_enabled("ServiceAccount") && !chosen.is_enabled("NodeRestriction"));
        assert!(!chosen.is_enabled("AlwaysPullImages"), "it is off by default");
        let asked = AdmissionPlugins::new(["AlwaysPullImages"], NONE).unwrap();
        assert!(asked.is_enabled("AlwaysPullImages") && asked.is_enabled("Priority"));
        assert_eq!(AdmissionPlugins::new(NONE, NONE), Ok(AdmissionPlugins::default()));
    }

    #[test]
    fn names_that_cannot_be_had_are_refused_with_the_list() {
        let told = |enabled: &[&str], disabled: &[&str]| {
            AdmissionPlugins::new(enabled, disabled).unwrap_err().to_string()
        };
        let unknown = told(&[], &["Priorty"]);
        assert!(
            unknown
                .starts_with("disable-admission-plugins plugin \"Priorty\" is unknown; those that it has: ")
        );
        assert!(
            unknown.contains(
                "NamespaceLifecycle, NodeDeclaredFeatureValidator, NodeRestriction, OwnerReferencesPermissionEnforcement, "
            ),
            "{unknown}"
        );
        let idle = AdmissionPlugins::new(["PodGroupProtection"], ["JobValidation"]).unwrap();
        assert!(idle.is_enabled("PodGroupProtection") && !idle.is_enabled("JobValidation"));
        assert_eq!(
            told(&["Priority"], &["Priority"]),
            "[Priority] in enable-admission-plugins and disable-admission-plugins overlapped"
        );
    }
}
