//! Reads the settings of plugins from the file of `--admission-control-config-file`: an `AdmissionConfiguration` with a section
//! for each plugin, inline or in another file.
//!
//! | file | holds the settings of |
//! |---|---|
//! | `event_limits` | `EventRateLimit` |
//! | `images` | `ImagePolicyWebhook` |
//! | `kubeconfig` | no plugin: a backend and how it is reached |
//! | `node_selectors` | `PodNodeSelector` |
//! | `pod_policy` | no plugin: the standards of `PodSecurity` |
//! | `pod_security` | `PodSecurity` |
//! | `quotas` | `ResourceQuota` |
//! | `tolerations` | `PodTolerationRestriction` |
//! | `webhooks` | `MutatingAdmissionWebhook`, `ValidatingAdmissionWebhook` |
//! | `sections` | no plugin: the file itself, and how a section is read |
//!
//! As upstream, only sections of enabled plugins are read, and unknown fields are ignored. A section of an enabled plugin
//! that has no settings here is refused by name.
//!
//! Read from staging/src/k8s.io/apiserver/pkg/admission/config.go of Kubernetes 1.36, and from the files of the plugins.

mod event_limits;
mod images;
mod kubeconfig;
mod node_selectors;
mod pod_policy;
mod pod_security;
mod quotas;
mod sections;
mod tolerations;
mod webhooks;

pub(super) use self::event_limits::{Limit, LimitKind};
pub(super) use self::images::ImagePolicy;
pub(super) use self::pod_policy::{Level, LevelVersion, Policy, Version};
pub(super) use self::pod_security::PodSecurity;
pub(super) use self::quotas::Limited;
pub(super) use self::tolerations::Toleration;
pub(in crate::admission) use self::webhooks::WebhookUsers;

use self::event_limits::EventLimits;
use self::node_selectors::NodeSelectors;
pub use self::sections::{AdmissionConfiguration, SettingsError};
use self::tolerations::Tolerations;

/// The settings of the enabled plugins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::admission) struct Settings {
    pub(super) tolerations: Tolerations,
    pub(super) event_limits: Vec<Limit>,
    pub(super) images: Option<ImagePolicy>,
    pub(super) node_selectors: NodeSelectors,
    pub(super) pod_security: PodSecurity,
    pub(super) limited: Vec<Limited>,
    pub(super) mutating_users: WebhookUsers,
    pub(super) validating_users: WebhookUsers,
}

/// Plugins that have settings upstream and none here.
const NOT_BUILT: [&str; 2] = ["MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"];

impl Settings {
    /// Reads the settings of the plugins for which `runs` returns true.
    ///
    /// # Errors
    /// The first plugin whose section is invalid or missing, and why.
    pub(super) fn read(
        configuration: &AdmissionConfiguration,
        runs: impl Fn(&str) -> bool,
    ) -> Result<Self, (&'static str, SettingsError)> {
        let section = |plugin: &'static str| match runs(plugin) {
            true => configuration.section(plugin).map_err(|error| (plugin, error)),
            false => Ok(None),
        };
        for plugin in NOT_BUILT {
            if section(plugin)?.is_some() {
                return Err((plugin, SettingsError::NotBuilt));
            }
        }
        let mut settings = Self::default();
        let plugin = "PodNodeSelector";
        if let Some(section) = section(plugin)? {
            settings.node_selectors = NodeSelectors::read(section).map_err(|error| (plugin, error))?;
        }
        let plugin = "PodSecurity";
        if let Some(section) = section(plugin)? {
            settings.pod_security = PodSecurity::read(&section).map_err(|error| (plugin, error))?;
        }
        let plugin = "ResourceQuota";
        if let Some(section) = section(plugin)? {
            settings.limited = quotas::read(&section).map_err(|error| (plugin, error))?;
        }
        let plugin = "PodTolerationRestriction";
        if let Some(section) = section(plugin)? {
            settings.tolerations = Tolerations::read(section).map_err(|error| (plugin, error))?;
        }
        for (plugin, users) in [
            ("MutatingAdmissionWebhook", &mut settings.mutating_users),
            ("ValidatingAdmissionWebhook", &mut settings.validating_users),
        ] {
            if let Some(section) = section(plugin)? {
                *users = WebhookUsers::read(&section, configuration).map_err(|error| (plugin, error))?;
            }
        }
        let plugin = "EventRateLimit";
        if runs(plugin) {
            let section = section(plugin)?.unwrap_or_default();
            settings.event_limits = EventLimits::read(&section).map_err(|error| (plugin, error))?;
        }
        let plugin = "ImagePolicyWebhook";
        if runs(plugin) {
            let images = ImagePolicy::read(section(plugin)?, configuration);
            settings.images = Some(images.map_err(|error| (plugin, error))?);
        }
        Ok(settings)
    }
}
