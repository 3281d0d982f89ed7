//! What plugins are set to: the file of `--admission-control-config-file`, an `AdmissionConfiguration` with a section for each
//! plugin, in it or in another file.
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
//! As upstream, only sections of plugins that run are read, and fields that nobody knows say nothing. A section of a plugin
//! that runs and can be set to nothing here is refused by name.
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

/// What the plugins that run are set to.
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

/// Plugins with nothing to set them by here, whose sections say something upstream.
const NOT_BUILT: [&str; 2] = ["MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"];

impl Settings {
    /// The settings of those plugins that `runs`.
    ///
    /// # Errors
    /// The first plugin that cannot be set so, and why.
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
