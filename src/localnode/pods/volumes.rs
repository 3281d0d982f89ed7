//! Creates the volumes of a Pod, which are folders of this machine, fills them, and computes the mounts of each container.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{
    ConfigMap, Container, DownwardAPIVolumeFile, KeyToPath, Pod, Secret, ServiceAccountTokenProjection,
    Volume,
};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use super::super::supervise::protocol::Mount;
use super::super::{Settings, node};
use super::env;
use super::error::VolumeError;
use super::projected::{Piece, inside, publish};
use super::service_account;
use crate::private;

/// The path of the account's token in every container.
pub(super) const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The default mode of files; the folder above is accessible to its owner only.
const MODE: i32 = 0o644;

/// The contents of a Secret or ConfigMap by key.
type Contents = BTreeMap<String, Vec<u8>>;

/// The volumes of a Pod.
#[derive(Clone, Debug, Default)]
pub(super) struct Volumes {
    folders: BTreeMap<String, PathBuf>,
    /// The lifetimes of its tokens in seconds: they are replaced before that.
    pub(super) tokens: Vec<Option<i64>>,
}

/// Creates and fills the volumes of a Pod below `folder`; existing ones are updated with the current Secrets and ConfigMaps.
///
/// # Errors
/// What is missing, with the messages of a kubelet.
pub(super) async fn fill(
    client: &Client,
    settings: &Settings,
    pod: &Pod,
    folder: &Path,
) -> Result<Volumes, VolumeError> {
    let filler = Filler { client, settings, pod, folder };
    let mut volumes = Volumes::default();
    for volume in pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten()) {
        let failed = |why: VolumeError| VolumeError::SetUp { name: volume.name.clone(), why: Box::new(why) };
        let path = filler.one(volume, &mut volumes.tokens).await.map_err(failed)?;
        volumes.folders.insert(volume.name.clone(), path);
    }
    Ok(volumes)
}

struct Filler<'a> {
    client: &'a Client,
    settings: &'a Settings,
    pod: &'a Pod,
    folder: &'a Path,
}

impl Filler<'_> {
    async fn one(&self, volume: &Volume, tokens: &mut Vec<Option<i64>>) -> Result<PathBuf, VolumeError> {
        let namespace = self.pod.namespace().unwrap_or_default();
        if let Some(claim) = &volume.persistent_volume_claim {
            let path = node::of_claim(&self.settings.folder, &namespace, &claim.claim_name);
            fs::create_dir_all(&path)?;
            return Ok(path);
        }
        let path = self.folder.join(&volume.name);
        private::make_folder(&path)?;
        let mut pieces = Vec::new();
        if let Some(secret) = &volume.secret {
            let name = secret.secret_name.clone().unwrap_or_default();
            let optional = secret.optional == Some(true);
            let data = self.secret(&name).await?;
            pieces = chosen(("secret", &name), data, secret.items.as_deref(), optional, secret.default_mode)?;
        } else if let Some(map) = &volume.config_map {
            let optional = map.optional == Some(true);
            let data = self.config_map(&map.name).await?;
            pieces =
                chosen(("configmap", &map.name), data, map.items.as_deref(), optional, map.default_mode)?;
        } else if let Some(down) = &volume.downward_api {
            pieces = self.fields(down.items.as_deref(), down.default_mode)?;
        } else if let Some(projected) = &volume.projected {
            let mode = projected.default_mode;
            for source in projected.sources.iter().flatten() {
                if let Some(secret) = &source.secret {
                    let optional = secret.optional == Some(true);
                    let data = self.secret(&secret.name).await?;
                    let named = ("secret", secret.name.as_str());
                    pieces.extend(chosen(named, data, secret.items.as_deref(), optional, mode)?);
                } else if let Some(map) = &source.config_map {
                    let optional = map.optional == Some(true);
                    let data = self.config_map(&map.name).await?;
                    let named = ("configmap", map.name.as_str());
                    pieces.extend(chosen(named, data, map.items.as_deref(), optional, mode)?);
                } else if let Some(down) = &source.downward_api {
                    pieces.extend(self.fields(down.items.as_deref(), mode)?);
                } else if let Some(token) = &source.service_account_token {
                    pieces.push(self.token(token, mode).await?);
                    tokens.push(token.expiration_seconds);
                } else {
                    return Err(VolumeError::UnknownSource);
                }
            }
        } else if volume.empty_dir.is_some() {
            return Ok(path);
        } else {
            return Err(VolumeError::UnknownKind);
        }
        publish(&path, &pieces)?;
        Ok(path)
    }

    /// Reads a Secret; None if it does not exist.
    async fn secret(&self, name: &str) -> Result<Option<Contents>, VolumeError> {
        let found = self.found::<Secret>(name).await?;
        Ok(found.map(|secret| {
            let data = secret.data.unwrap_or_default().into_iter();
            data.map(|(key, value)| (key, value.0)).collect()
        }))
    }

    /// Reads a ConfigMap; None if it does not exist.
    async fn config_map(&self, name: &str) -> Result<Option<Contents>, VolumeError> {
        let found = self.found::<ConfigMap>(name).await?;
        Ok(found.map(|map| {
            let texts = map.data.unwrap_or_default().into_iter().map(|(key, text)| (key, text.into_bytes()));
            let bytes = map.binary_data.unwrap_or_default().into_iter().map(|(key, bytes)| (key, bytes.0));
            texts.chain(bytes).collect()
        }))
    }

    /// Reads an object in the Pod's namespace.
    async fn found<K>(&self, name: &str) -> Result<Option<K>, VolumeError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let namespace = self.pod.namespace().unwrap_or_default();
        let api: Api<K> = Api::namespaced(self.client.clone(), &namespace);
        api.get_opt(name).await.map_err(VolumeError::Server)
    }

    fn fields(
        &self,
        items: Option<&[DownwardAPIVolumeFile]>,
        mode: Option<i32>,
    ) -> Result<Vec<Piece>, VolumeError> {
        let items = items.unwrap_or_default().iter();
        let pieces = items.map(|item| {
            let Some(field) = &item.field_ref else {
                return Err(VolumeError::UnknownField);
            };
            let text = env::field_of(self.pod, &field.field_path)?;
            let mode = item.mode.or(mode).unwrap_or(MODE);
            Ok(Piece { path: item.path.clone(), bytes: text.into_bytes(), mode })
        });
        pieces.collect()
    }

    async fn token(
        &self,
        asked: &ServiceAccountTokenProjection,
        mode: Option<i32>,
    ) -> Result<Piece, VolumeError> {
        let (audience, life) = (asked.audience.as_deref(), asked.expiration_seconds);
        let token = service_account::token(self.client, self.pod, audience, life).await;
        let token = token.map_err(VolumeError::Token)?;
        Ok(Piece { path: asked.path.clone(), bytes: token.into_bytes(), mode: mode.unwrap_or(MODE) })
    }
}

/// Returns the selected keys, each with its path; all of them if none is selected.
fn chosen(
    (kind, name): (&'static str, &str),
    data: Option<Contents>,
    items: Option<&[KeyToPath]>,
    optional: bool,
    mode: Option<i32>,
) -> Result<Vec<Piece>, VolumeError> {
    let Some(mut data) = data else {
        return if optional {
            Ok(Vec::new())
        } else {
            Err(VolumeError::NotFound { kind, name: name.to_owned() })
        };
    };
    let mode = mode.unwrap_or(MODE);
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        return Ok(data.into_iter().map(|(path, bytes)| Piece { path, bytes, mode }).collect());
    };
    let mut pieces = Vec::new();
    for item in items {
        match data.remove(&item.key) {
            Some(bytes) => {
                let mode = item.mode.unwrap_or(mode);
                pieces.push(Piece { path: item.path.clone(), bytes, mode });
            }
            None if optional => {}
            None => return Err(VolumeError::MissingKey { kind, key: item.key.clone() }),
        }
    }
    Ok(pieces)
}

impl Volumes {
    /// Returns the mounts of a container.
    ///
    /// # Errors
    /// For a path that leads out of its volume, and for an unknown volume.
    pub(super) fn mounts(
        &self,
        container: &Container,
        account: Option<&Path>,
        env: &BTreeMap<String, String>,
    ) -> Result<Vec<Mount>, VolumeError> {
        let mut mounts = Vec::new();
        for mount in container.volume_mounts.iter().flatten() {
            let Some(folder) = self.folders.get(&mount.name) else {
                return Err(VolumeError::MissingVolume(mount.name.clone()));
            };
            let expression = mount.sub_path_expr.as_deref().map(|text| env::expanded(text, env));
            let below = expression.as_deref().or(mount.sub_path.as_deref()).filter(|path| !path.is_empty());
            let source = match below {
                None => folder.clone(),
                Some(path) => {
                    let source = inside(folder, path).ok_or_else(|| VolumeError::InvalidSubPath {
                        path: path.to_owned(),
                        volume: mount.name.clone(),
                    })?;
                    if !source.exists() {
                        fs::create_dir_all(&source)
                            .map_err(|why| VolumeError::SubPath { path: path.to_owned(), why })?;
                    }
                    source
                }
            };
            let target = PathBuf::from(&mount.mount_path);
            mounts.push(Mount { source, target, read_only: mount.read_only == Some(true) });
        }
        if let Some(account) = account
            && !mounts.iter().any(|mount| mount.target == Path::new(ACCOUNT))
        {
            mounts.push(Mount { source: account.to_owned(), target: ACCOUNT.into(), read_only: true });
        }
        // A volume inside another one is mounted after it.
        mounts.sort_by(|one, two| one.target.cmp(&two.target));
        Ok(mounts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_asked_for_have_to_be_there() {
        let data = || Some(BTreeMap::from([("a".to_owned(), b"1".to_vec())]));
        let item = |key: &str| [KeyToPath { key: key.to_owned(), path: "p".to_owned(), mode: None }];
        let of = |items: &[KeyToPath], optional| chosen(("secret", "s"), data(), Some(items), optional, None);
        assert_eq!(of(&item("a"), false).unwrap()[0].path, "p");
        let missing = of(&item("b"), false).unwrap_err().to_string();
        assert_eq!(missing, "references non-existent secret key: b");
        assert!(of(&item("b"), true).unwrap().is_empty());
        let missing = chosen(("secret", "s"), None, None, false, None).unwrap_err().to_string();
        assert_eq!(missing, "secret \"s\" not found");
    }
}
