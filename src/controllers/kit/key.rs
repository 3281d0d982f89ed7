//! Identifies an object by namespace, name and uid. The uid is included because an object that was deleted and
//! created again with its name is a different one, to which nothing known of the first applies.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt};

/// The identity of an object of a kind that is known from the context. The namespace is empty for cluster-scoped
/// objects.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Key {
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

impl Key {
    #[must_use]
    pub fn of(object: &impl Resource) -> Self {
        Self::of_meta(object.meta())
    }

    #[must_use]
    pub fn of_meta(meta: &ObjectMeta) -> Self {
        Self {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
        }
    }

    /// Returns the objects of kind `K` that own `object`. Owners of namespaced kinds are in the same namespace.
    pub(in crate::controllers) fn owners<K: Resource<DynamicType = ()>>(
        object: &impl Resource,
        namespaced: bool,
    ) -> Vec<Self> {
        let group = K::group(&());
        let ours = |owner: &&OwnerReference| {
            let owners_group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
            owner.kind == K::kind(&()) && owners_group == group
        };
        let namespace = if namespaced { object.meta().namespace.clone() } else { None };
        let key = |owner: &OwnerReference| Self {
            namespace: namespace.clone().unwrap_or_default(),
            name: owner.name.clone(),
            uid: owner.uid.clone(),
        };
        object.owner_references().iter().filter(ours).map(key).collect()
    }

    pub(super) fn reference<K: Resource<DynamicType = ()>>(&self) -> ObjectRef<K> {
        let reference = ObjectRef::new(&self.name);
        if self.namespace.is_empty() { reference } else { reference.within(&self.namespace) }
    }
}

/// Formats as kubectl does: `namespace/name`, or only the name.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => f.write_str(&self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}
