//! Runs the admission plugins over given objects, without a cluster: for checks of manifests, and for test cases.
//!
//! | file | decides |
//! |---|---|
//! | `given` | how plugins see the given objects |
//! | `books` | what quotas are charged with, and their usage before |

mod books;
mod given;

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use admit_policy::{GroupVersionKind, Host, Object, Operation, Plugged, Plugins, Request, Status, UserInfo};
use serde_json::{Value, json};

use self::books::Books;
use self::given::Given;
use super::builtin_kinds::{TABLE, call_about};
use super::quotas::{is_charged_again, is_counted, uncovered_refusal};
use crate::admission::quota::{Counted, Written};
use crate::admission::{AdmissionConfiguration, Offline, PluginError, Review};
use crate::call::{Call, DeleteOptions};
use crate::identity::Identity;
use crate::object;
use crate::resources::{Scope, Subresource};
use crate::status::Refusal;

/// The admission plugins of the embedded server, over given objects: Namespaces with their labels, LimitRanges,
/// ResourceQuotas, ServiceAccounts and classes. An object that is named but not given is assumed to exist, and the
/// assumption is reported.
///
/// ```
/// use std::sync::Arc;
///
/// use admit_apiserver::{AdmissionConfiguration, BuiltinKinds, OfflinePlugins};
/// use admit_policy::apply::{Options, Rehearsal, pair};
/// use admit_policy::{LoadOptions, PolicySet};
/// use serde_json::json;
///
/// let plugins = OfflinePlugins::new(&[], &[], &AdmissionConfiguration::default()).unwrap();
/// let set = PolicySet::load_files([], LoadOptions::default()).unwrap().plugging(Arc::new(plugins));
/// let label = json!({"pod-security.kubernetes.io/enforce": "baseline"});
/// let shop = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": label}});
/// let pod = json!({
///     "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
///     "spec": {"hostNetwork": true, "priorityClassName": "high", "containers": [{"name": "web", "image": "web:1"}]},
/// });
/// let pair = pair(&[Arc::new(pod)], &[], set.documents(), "shop").unwrap().pairs.remove(0);
/// let applied = Rehearsal::new(&set, [Arc::new(shop)], Options::default()).knowing(&BuiltinKinds).apply(&pair);
/// assert!(applied.refusal.unwrap().message.contains(r#"violates PodSecurity "baseline:latest": host namespaces"#));
/// assert_eq!(applied.assumed, ["PriorityClass \"high\""]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct OfflinePlugins {
    offline: Arc<Offline>,
    /// The quotas that successive requests are charged to; without them each request is independent.
    books: Option<Arc<Mutex<Books>>>,
}

impl OfflinePlugins {
    /// Selects the plugins that are on by default, plus `enabled` and without `disabled` ones.
    ///
    /// # Errors
    /// For unknown names, plugins that need a cluster, and invalid settings.
    pub fn new(
        enabled: &[String],
        disabled: &[String],
        configuration: &AdmissionConfiguration,
    ) -> Result<Self, PluginError> {
        let offline = Arc::new(Offline::new(enabled, disabled, configuration)?);
        Ok(Self { offline, books: None })
    }

    /// Returns the plugins with `quotas` that successive requests are charged to. Their usage before is that of their status,
    /// or else that of `objects`.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use admit_apiserver::OfflinePlugins;
    /// use serde_json::json;
    ///
    /// let quota = json!({
    ///     "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": "shop"},
    ///     "spec": {"hard": {"configmaps": "1"}},
    /// });
    /// assert!(OfflinePlugins::keeps(&quota) && !OfflinePlugins::keeps(&json!({"apiVersion": "v1", "kind": "Secret"})));
    /// let plugins = OfflinePlugins::default().charging(&[Arc::new(quota)], []);
    /// assert_ne!(format!("{plugins:?}"), format!("{:?}", OfflinePlugins::default()));
    /// ```
    #[must_use]
    pub fn charging(&self, quotas: &[Arc<Value>], objects: impl IntoIterator<Item = Arc<Value>>) -> Self {
        let books = Some(Arc::new(Mutex::new(Books::new(quotas, objects))));
        Self { offline: Arc::clone(&self.offline), books }
    }

    /// Returns whether the object is a ResourceQuota, which is to be [charged](Self::charging).
    #[must_use]
    pub fn keeps(object: &Value) -> bool {
        books::is_quota(object)
    }

    fn plugged(&self, request: &Request<'_>, host: &dyn Host, phase: Phase) -> Plugged {
        let Some(asked) = Asked::of(request) else { return Plugged::default() };
        let (review, mut assumed) = (asked.review(), Vec::new());
        let given = Given::of(host, request);
        let answer = match phase {
            Phase::Mutate => self.offline.mutate(&given, &review, &mut assumed),
            Phase::Validate => self.offline.validate(&given, &review, &mut assumed).map(|()| None),
        };
        let (object, refusal) = match answer {
            Ok(object) => (object, None),
            Err(refusal) => (None, Some(refusal.into_status())),
        };
        let (warnings, audit_annotations) =
            (asked.call.warnings.take(), asked.call.warnings.take_annotations());
        Plugged { object, refusal, warnings, audit_annotations, assumed }
    }
}

#[derive(Clone, Copy)]
enum Phase {
    Mutate,
    Validate,
}

impl Plugins for OfflinePlugins {
    fn looks_up(&self, kind: &GroupVersionKind) -> bool {
        let is_it = |row: &str| Offline::looks_up(row);
        TABLE
            .rows()
            .iter()
            .any(|row| row.builtin && row.group == kind.group && row.kind == kind.kind && is_it(&row.plural))
    }

    fn mutate(&self, request: &Request<'_>, host: &dyn Host) -> Plugged {
        self.plugged(request, host, Phase::Mutate)
    }

    fn validate(&self, request: &Request<'_>, host: &dyn Host) -> Plugged {
        self.plugged(request, host, Phase::Validate)
    }

    fn charge(&self, request: &Request<'_>, host: &dyn Host) -> Option<Status> {
        let Asked { call, object, old } = Asked::of(request)?;
        let object = object.filter(|_| self.offline.charges() && is_counted(&call))?;
        let object = &*object;
        if old.is_some() && !is_charged_again(&call) {
            return None;
        }
        let of = Counted { group: &call.info.group, plural: &call.info.plural };
        let written = Written { of, object, old: old.as_deref(), now: call.clock.now() };
        let mut alone;
        let mut shared =
            self.books.as_ref().map(|books| books.lock().unwrap_or_else(PoisonError::into_inner));
        let books = match &mut shared {
            Some(books) => &mut **books,
            None => {
                alone = Books::of_namespace(host, request, &call.namespace);
                &mut alone
            }
        };
        if let Some(uncovered) = self.offline.uncovered(|| books.of(&call.namespace), written) {
            return Some(uncovered_refusal(&call, object, uncovered).into_status());
        }
        let excess = books.charge(&call.namespace, written).err()?;
        Some(Refusal::forbidden(&call.info, object::name(object), excess.text()).into_status())
    }
}

/// A request in the form of the server.
struct Asked<'r> {
    call: Call,
    object: Option<Cow<'r, Value>>,
    old: Option<Cow<'r, Value>>,
}

impl<'r> Asked<'r> {
    /// Converts a request; None for resources that are not built in, and for connections.
    fn of(request: &'r Request<'_>) -> Option<Self> {
        let resource = &request.resource;
        let info = TABLE.find(&resource.group, &resource.version, &resource.resource)?;
        let subresource = match request.subresource.as_str() {
            "" => None,
            named => Some(Subresource::named(named)?),
        };
        let object = request.object.as_ref().map(Object::value);
        let old = request.old_object.as_ref().map(Object::value);
        let is_whole = match request.operation {
            Operation::Create | Operation::Update => object.is_some(),
            Operation::Delete => old.is_some(),
            Operation::Connect => false,
        };
        let namespace =
            if info.scope == Scope::Namespaced { request.namespace.clone() } else { String::new() };
        is_whole.then(|| Self {
            call: call_about(info, namespace, subresource, identity(&request.user)),
            object,
            old: old.filter(|_| request.operation != Operation::Create),
        })
    }

    fn review(&self) -> Review<'_> {
        let (object, old) = (self.object.as_deref(), self.old.as_deref());
        let name = object::name(object.or(old).unwrap_or(&Value::Null));
        match (object, old) {
            (Some(object), Some(old)) => Review::update(&self.call, name, (object, old), false, json!({})),
            (Some(object), None) => Review::create(&self.call, name, object, false, json!({})),
            (None, old) => {
                let old = old.unwrap_or(&Value::Null);
                Review::delete(&self.call, name, old, &DeleteOptions::default())
            }
        }
    }
}

fn identity(user: &UserInfo) -> Identity {
    Identity {
        username: user.username.clone(),
        uid: user.uid.clone(),
        groups: user.groups.clone(),
        extra: user.extra.iter().map(|(key, values)| (key.clone(), values.clone())).collect(),
    }
}
