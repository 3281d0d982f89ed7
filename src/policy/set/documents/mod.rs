//! Implements a [`Host`] that answers from objects in files: Namespaces, params and CRDs.

mod in_namespace;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use admit_apimachinery::pointer;
use admit_cel::{DeclType, Type};
use serde_json::Value;

use crate::crd::{self, CompiledCrd, Converts};
use crate::matching::builtin;
use crate::request::access::AccessAnswers;
use crate::request::host::{Access, AccessAttributes, Host, HostError, Scope};
use crate::request::rbac::AccessRules;
use crate::request::{GroupVersionKind, GroupVersionResource, UserInfo};
use crate::set::builtins::Builtins;
use crate::set::plugins::Plugins;
use crate::vap::{Types, with_object_meta};

/// A collection of objects. Cloning shares all of it until one of both is changed.
///
/// ```
/// use std::sync::Arc;
///
/// use admit_policy::crd::CompiledCrd;
/// use admit_policy::{
///     AccessAnswers, AccessAttributes, Documents, GroupVersionKind, Host as _, Scope, UserInfo,
/// };
/// use serde_json::json;
///
/// let mut documents = Documents::default();
/// documents.ensure_namespace("shop");
/// documents.insert(Arc::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "limits", "namespace": "shop"}})));
/// assert!(documents.namespace("shop")?.is_some());
/// assert!(documents.holds(&GroupVersionKind::new("", "v1", "ConfigMap")));
///
/// let definition = json!({
///     "apiVersion": "apiextensions.k8s.io/v1",
///     "kind": "CustomResourceDefinition",
///     "metadata": {"name": "cats.example.com"},
///     "spec": {
///         "group": "example.com",
///         "names": {"plural": "cats", "singular": "cat", "kind": "Cat"},
///         "scope": "Cluster",
///         "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
///     },
/// });
/// documents.insert_crd(Arc::new(CompiledCrd::compile(&definition).unwrap()));
/// let cat = GroupVersionKind::new("example.com", "v1", "Cat");
/// assert!(documents.crd_of(&cat).is_some() && documents.crds().len() == 1);
/// assert_eq!(documents.resource_of(&cat).resource, "cats");
/// assert_eq!(documents.scope_of(&cat), Scope::Cluster);
///
/// documents.set_converts(|_, _, _, _| None);
/// documents.set_answers(Arc::new(AccessAnswers::read(&json!([{"allowed": true}])).unwrap()));
/// let path = AccessAttributes::Path { verb: "get".to_owned(), path: "/healthz".to_owned() };
/// assert!(documents.authorize(&UserInfo::default(), &path)?.allowed);
/// # Ok::<(), admit_policy::HostError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Documents {
    objects: Arc<HashMap<GroupVersionKind, BTreeMap<ObjectKey, Arc<Value>>>>,
    crds: Vec<Arc<CompiledCrd>>,
    access: Arc<AccessRules>,
    /// Predefined answers that replace an authorizer.
    answers: Option<Arc<AccessAnswers>>,
    /// Stands in for conversion webhooks.
    converts: Option<Converts>,
    /// A server's knowledge of built-in kinds.
    builtins: Option<&'static dyn Builtins>,
    /// Admission plugins of a server.
    plugins: Option<Arc<dyn Plugins>>,
    now: Option<SystemTime>,
}

/// Namespace and name; objects are listed in this order.
type ObjectKey = (String, String);

impl Documents {
    /// Adds `object`, in place of one of the same kind, namespace and name.
    pub fn insert(&mut self, object: Arc<Value>) {
        let text = |pointer: &str| pointer::text(&object, pointer).to_owned();
        let kind = GroupVersionKind::of(&object);
        if AccessRules::speak_of(&kind.group, &kind.kind) {
            Arc::make_mut(&mut self.access).insert(&object);
        }
        let key = (text("/metadata/namespace"), text("/metadata/name"));
        Arc::make_mut(&mut self.objects).entry(kind).or_default().insert(key, object);
    }

    /// Adds a plain Namespace of that name, as a cluster would create it, unless there is one. The empty name means cluster-scoped
    /// objects.
    pub fn ensure_namespace(&mut self, name: &str) {
        if !name.is_empty() && !matches!(self.namespace(name), Ok(Some(_))) {
            self.insert(Arc::new(in_namespace::plain(name, &[])));
        }
    }

    /// Answers access checks from `answers`, whatever the roles say.
    pub fn set_answers(&mut self, answers: Arc<AccessAnswers>) {
        self.answers = Some(answers);
    }

    /// Sets the defaults and checks of built-in kinds, which test cases of suites apply. [`Builtins`] has an example.
    pub fn set_builtins(&mut self, builtins: &'static dyn Builtins) {
        self.builtins = Some(builtins);
    }

    /// A server's knowledge of built-in kinds, if it was [set](Self::set_builtins). [`Builtins`] has an example.
    pub fn builtins(&self) -> Option<&'static dyn Builtins> {
        self.builtins
    }

    /// Sets the admission plugins that a server has built in. [`Plugins`] has an example.
    pub fn set_plugins(&mut self, plugins: Arc<dyn Plugins>) {
        self.plugins = Some(plugins);
    }

    /// The admission plugins of a server, if they were [set](Self::set_plugins). [`Plugins`] has an example.
    pub fn plugins(&self) -> Option<&dyn Plugins> {
        self.plugins.as_deref()
    }

    /// Sets when requests are decided. [`PolicyException`](crate::PolicyException) has an example.
    pub fn set_now(&mut self, now: SystemTime) {
        self.now = Some(now);
    }

    /// Sets the converters that replace conversion webhooks.
    pub fn set_converts(&mut self, converts: Converts) {
        self.converts = Some(converts);
    }

    /// Whether there is an object of `kind`.
    pub fn holds(&self, kind: &GroupVersionKind) -> bool {
        self.objects.contains_key(kind)
    }

    pub fn insert_crd(&mut self, crd: Arc<CompiledCrd>) {
        self.crds.push(crd);
    }

    /// Puts `crd` in the place of the definition of its name.
    pub(crate) fn replace_crd(&mut self, crd: &Arc<CompiledCrd>) {
        let same = |known: &&mut Arc<CompiledCrd>| known.definition().name == crd.definition().name;
        self.crds.iter_mut().filter(same).for_each(|known| *known = Arc::clone(crd));
    }

    pub fn crds(&self) -> &[Arc<CompiledCrd>] {
        &self.crds
    }

    /// The definition that serves `kind`.
    pub fn crd_of(&self, kind: &GroupVersionKind) -> Option<&Arc<CompiledCrd>> {
        self.crds.iter().find(|crd| {
            let definition = crd.definition();
            definition.group == kind.group
                && definition.names.kind == kind.kind
                && definition.versions.iter().any(|version| version.name == kind.version)
        })
    }

    /// The resource of a kind: from its CRD, else by the rules of English that Kubernetes' guess follows.
    pub fn resource_of(&self, kind: &GroupVersionKind) -> GroupVersionResource {
        let plural = match self.crd_of(kind) {
            Some(crd) => crd.definition().names.plural.clone(),
            None => plural_of(&kind.kind),
        };
        GroupVersionResource::new(kind.group.as_str(), kind.version.as_str(), plural)
    }

    /// Whether objects of a kind are namespaced or cluster-scoped. Unknown kinds count as namespaced, since most are.
    pub fn scope_of(&self, kind: &GroupVersionKind) -> Scope {
        self.defined_scope(kind).or_else(|| builtin_scope(kind)).unwrap_or(Scope::Namespaced)
    }

    fn defined_scope(&self, kind: &GroupVersionKind) -> Option<Scope> {
        Some(match self.crd_of(kind)?.definition().scope {
            crd::Scope::Cluster => Scope::Cluster,
            crd::Scope::Namespaced | crd::Scope::Other(_) => Scope::Namespaced,
        })
    }

    /// An object of `version` in that of `kind`.
    fn in_version(
        &self,
        object: &Arc<Value>,
        version: &GroupVersionKind,
        kind: &GroupVersionKind,
    ) -> Result<Arc<Value>, HostError> {
        if version == kind { Ok(Arc::clone(object)) } else { self.convert(object, kind).map(Arc::new) }
    }

    /// The kind in every version that its definition has; of a kind without one, itself.
    fn versions_of(&self, kind: &GroupVersionKind) -> Vec<GroupVersionKind> {
        let Some(crd) = self.crd_of(kind) else { return vec![kind.clone()] };
        let versions = crd.definition().versions.iter();
        versions.map(|version| GroupVersionKind::new(&*kind.group, &*version.name, &*kind.kind)).collect()
    }

    fn crd_of_resource(&self, group: &str, plural: &str) -> Option<&Arc<CompiledCrd>> {
        self.crds.iter().find(|crd| {
            let definition = crd.definition();
            definition.group == group && definition.names.plural == plural
        })
    }

    /// The version in which objects of a defined resource are stored.
    pub(crate) fn stored_version(&self, group: &str, plural: &str) -> Option<&str> {
        let versions = &self.crd_of_resource(group, plural)?.definition().versions;
        versions.iter().find(|version| version.storage).map(|version| version.name.as_str())
    }
}

impl Host for Documents {
    fn namespace(&self, name: &str) -> Result<Option<Arc<Value>>, HostError> {
        let kind = GroupVersionKind::new("", "v1", "Namespace");
        let namespaces = self.objects.get(&kind);
        Ok(namespaces.and_then(|all| all.get(&(String::new(), name.to_owned()))).cloned())
    }

    fn param_scope(&self, kind: &GroupVersionKind) -> Option<Scope> {
        if let Some(scope) = self.defined_scope(kind) {
            return Some(scope);
        }
        // Without a definition the objects themselves show whether they are namespaced.
        let of_objects = self.objects.get(kind).and_then(|objects| objects.keys().next());
        let of_objects = of_objects
            .map(|(namespace, _)| if namespace.is_empty() { Scope::Cluster } else { Scope::Namespaced });
        of_objects.or_else(|| builtin_scope(kind))
    }

    /// Objects of other versions count too, converted to the requested one.
    fn params(&self, kind: &GroupVersionKind, namespace: &str) -> Result<Vec<Arc<Value>>, HostError> {
        let mut params = Vec::new();
        for version in self.versions_of(kind) {
            let objects = self.objects.get(&version).into_iter();
            let from = (namespace.to_owned(), String::new());
            let objects = objects.flat_map(|objects| objects.range(from.clone()..));
            for (_, object) in objects.take_while(|((own, _), _)| own == namespace) {
                params.push(self.in_version(object, &version, kind)?);
            }
        }
        Ok(params)
    }

    fn params_named(
        &self,
        kind: &GroupVersionKind,
        namespace: &str,
        name: &str,
    ) -> Result<Vec<Arc<Value>>, HostError> {
        let key = (namespace.to_owned(), name.to_owned());
        let versions = self.versions_of(kind).into_iter();
        let named = versions.filter_map(|version| Some((self.objects.get(&version)?.get(&key)?, version)));
        named.map(|(object, version)| self.in_version(object, &version, kind)).collect()
    }

    fn equivalents(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> Vec<(GroupVersionResource, GroupVersionKind)> {
        let Some(crd) = self.crd_of_resource(&resource.group, &resource.resource) else {
            return builtin::equivalents(resource, subresource);
        };
        let definition = crd.definition();
        let has_it = |version: &crd::Version| match subresource {
            "" => true,
            "status" => version.status_subresource,
            "scale" => version.scale.is_some(),
            _ => false,
        };
        let served = definition.versions.iter().filter(|version| version.served && has_it(version));
        let equivalent = |version: &crd::Version| {
            let group = definition.group.as_str();
            let kind = match subresource {
                "scale" => GroupVersionKind::new("autoscaling", "v1", "Scale"),
                _ => GroupVersionKind::new(group, version.name.as_str(), definition.names.kind.as_str()),
            };
            (GroupVersionResource::new(group, version.name.as_str(), resource.resource.as_str()), kind)
        };
        served.map(equivalent).collect()
    }

    fn convert(&self, object: &Value, kind: &GroupVersionKind) -> Result<Value, HostError> {
        match self.crd_of(kind) {
            None => builtin::convert(object, kind).ok_or_else(|| {
                let to = format!("{}, Kind={}", kind.api_version(), kind.kind);
                HostError(format!("conversion to {to} is not supported"))
            }),
            Some(crd) => {
                let converted = match self.converts {
                    Some(converts) => crd.convert_by(object, &kind.version, converts),
                    None => crd.convert(object, &kind.version),
                };
                converted.map_err(|error| HostError(error.to_string()))
            }
        }
    }

    /// Uses predefined answers, else the roles among the documents, if there are any.
    fn authorize(&self, user: &UserInfo, attributes: &AccessAttributes) -> Result<Access, HostError> {
        if let Some(answers) = &self.answers {
            return Ok(answers.answer(user, attributes));
        }
        if self.access.is_empty() {
            return Err(HostError(
                "no authorizer: access cannot be checked from files without roles".to_owned(),
            ));
        }
        Ok(self.access.authorize(user, attributes))
    }

    fn now(&self) -> Option<SystemTime> {
        self.now
    }
}

fn plural_of(kind: &str) -> String {
    let singular = kind.to_lowercase();
    if singular == "endpoints" {
        return singular;
    }
    if singular.ends_with('s') {
        return format!("{singular}es");
    }
    match singular.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{singular}s"),
    }
}

/// Kinds of Kubernetes itself: those that live in no namespace, and those that are used as params.
fn builtin_scope(kind: &GroupVersionKind) -> Option<Scope> {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "ConfigMap" | "Secret" | "ServiceAccount" | "Service" | "ResourceQuota" | "LimitRange")
        | ("rbac.authorization.k8s.io", "Role" | "RoleBinding") => Some(Scope::Namespaced),
        ("", "Namespace" | "Node" | "PersistentVolume")
        | ("rbac.authorization.k8s.io", "ClusterRole" | "ClusterRoleBinding")
        | ("storage.k8s.io", "StorageClass" | "CSIDriver" | "CSINode" | "VolumeAttachment")
        | ("scheduling.k8s.io", "PriorityClass")
        | ("networking.k8s.io", "IngressClass" | "IPAddress" | "ServiceCIDR")
        | ("node.k8s.io", "RuntimeClass")
        | ("flowcontrol.apiserver.k8s.io", _)
        | ("apiregistration.k8s.io", "APIService")
        | ("apiextensions.k8s.io", "CustomResourceDefinition")
        | ("certificates.k8s.io", "CertificateSigningRequest")
        | ("admissionregistration.k8s.io", _) => Some(Scope::Cluster),
        _ => None,
    }
}

/// The types of custom resources, by their definitions.
impl Types for Documents {
    fn kinds(&self, resource: &GroupVersionResource) -> Vec<GroupVersionKind> {
        let definition =
            self.crd_of_resource(&resource.group, &resource.resource).map(|crd| crd.definition());
        let served = |definition: &&crd::Definition| {
            definition.version(&resource.version).is_some_and(|version| version.served)
        };
        let kind = |definition: &crd::Definition| {
            GroupVersionKind::new(&*resource.group, &*resource.version, &*definition.names.kind)
        };
        definition.filter(served).map(kind).into_iter().collect()
    }

    fn type_of(&self, kind: &GroupVersionKind) -> Option<Type> {
        let version = self.crd_of(kind)?.version(&kind.version)?;
        // Without a schema, expressions may use any field.
        let decl = crd::rules::decl::named(version.schema(), true, &kind.kind);
        let typed = |decl: Arc<DeclType>| Arc::new(with_object_meta(&decl)).cel_type();
        Some(decl.map_or(Type::Dyn, typed))
    }
}
