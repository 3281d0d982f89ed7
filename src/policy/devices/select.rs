//! Selects devices from ResourceSlices by the selectors of a DeviceClass, a claim, or given ones.
//!
//! A selected device may still be allocated to another claim, or not be reachable from a node.

use std::collections::HashMap;

use serde_json::Value;
use thiserror::Error;

use super::device::Device;
use super::error::{SelectionError, SelectorError};
use super::features::DeviceFeatures;
use super::language::Selector;
use crate::read::decode::{Fields, FieldsError};
use crate::report::options::EvalOptions;
use crate::report::recording::{Expression, ExpressionId, Origin};

const GROUP: &str = "resource.k8s.io/";

/// The devices, classes and claims of documents.
///
/// ```
/// use admit_policy::{DeviceFeatures, Devices, EvalOptions, SelectedBy};
/// use serde_json::json;
///
/// let slice = json!({
///     "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "a"},
///     "spec": {"driver": "gpu.example.com", "pool": {"name": "node-1"}, "devices": [
///         {"name": "gpu-0", "capacity": {"memory": {"value": "40Gi"}}},
///         {"name": "gpu-1", "capacity": {"memory": {"value": "80Gi"}}},
///     ]},
/// });
/// let class = json!({
///     "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
///     "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]},
/// });
/// let devices = Devices::read([&slice, &class], DeviceFeatures::default())?;
/// assert_eq!((devices.all().len(), devices.expressions().len()), (2, 1));
/// let big = ["device.capacity['gpu.example.com'].memory.compareTo(quantity('50Gi')) > 0".to_owned()];
/// let by = SelectedBy { class: Some("gpu"), claim: None, request: None, selectors: &big };
/// let selected = devices.select(&by, EvalOptions::default())?;
/// let names: Vec<_> = selected.iter().filter(|one| one.matches == Ok(true)).map(|one| one.device.to_string()).collect();
/// assert_eq!(names, ["gpu.example.com/node-1/gpu-1"]);
/// # Ok::<(), admit_policy::NoSelection>(())
/// ```
#[derive(Debug)]
pub struct Devices {
    devices: Vec<Device>,
    features: DeviceFeatures,
    classes: HashMap<String, Result<Vec<Selector>, NoSelection>>,
    /// Requests of claims, by namespace and name, or name alone.
    claims: HashMap<String, Vec<Request>>,
}

/// A request of a claim.
#[derive(Debug)]
struct Request {
    name: String,
    class: String,
    selectors: Result<Vec<Selector>, NoSelection>,
}

/// What selects. [`Devices`] has an example.
#[derive(Clone, Copy, Debug, Default)]
pub struct SelectedBy<'s> {
    /// A DeviceClass.
    pub class: Option<&'s str>,
    /// A ResourceClaim or ResourceClaimTemplate: `NAMESPACE/NAME` or `NAME`.
    pub claim: Option<&'s str>,
    /// The name of a request of the claim; may be omitted if it has only one.
    pub request: Option<&'s str>,
    /// Expressions beside those.
    pub selectors: &'s [String],
}

/// One device, and whether it is selected.
#[derive(Clone, Debug, PartialEq)]
pub struct Selected<'d> {
    pub device: &'d Device,
    /// Whether it is selected; or why that is unknown.
    pub matches: Result<bool, SelectionError>,
}

/// Why the selection fails as a whole.
///
/// ```
/// use admit_policy::NoSelection;
///
/// assert_eq!(NoSelection::NoClass("gpu".to_owned()).to_string(), "could not find device class gpu");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoSelection {
    #[error(transparent)]
    Document(#[from] FieldsError),
    #[error("could not find device class {0}")]
    NoClass(String),
    #[error("there is no ResourceClaim or ResourceClaimTemplate `{0}` among the documents")]
    NoClaim(String),
    #[error("claim {claim} has no request `{request}`; these are: {known}")]
    NoRequest { claim: String, request: String, known: String },
    /// A selector of a class or a claim is invalid.
    #[error("{owner}: selector #{index}: CEL compile error: {error}")]
    Selector { owner: String, index: usize, error: SelectorError },
    /// A selector outside of documents is invalid.
    #[error("{0}")]
    Compile(#[from] SelectorError),
}

impl Devices {
    /// Reads the classes, claims and slices of documents; others are skipped.
    ///
    /// # Errors
    /// [`NoSelection::Document`] for a field of a wrong type. An invalid selector is reported when it is used.
    pub fn read<'d>(
        documents: impl IntoIterator<Item = &'d Value>,
        features: DeviceFeatures,
    ) -> Result<Self, NoSelection> {
        let mut found =
            Self { devices: Vec::new(), features, classes: HashMap::new(), claims: HashMap::new() };
        for document in documents {
            let fields = match Fields::of(document, "") {
                Ok(fields) if fields.string("apiVersion").is_ok_and(|version| version.starts_with(GROUP)) => {
                    fields
                }
                _ => continue,
            };
            let (kind, metadata) = (
                fields.string("kind").map_err(FieldsError::from)?,
                fields.object("metadata").map_err(FieldsError::from)?,
            );
            let name = metadata.string("name").map_err(FieldsError::from)?;
            let namespace = metadata.string("namespace").map_err(FieldsError::from)?;
            let spec = fields.object("spec").map_err(FieldsError::from)?;
            match kind.as_str() {
                "ResourceSlice" => found.slice(&spec)?,
                "DeviceClass" => {
                    let selectors = found.selectors(&spec, (&kind, &name), &format!("class {name}"))?;
                    found.classes.insert(name, selectors);
                }
                "ResourceClaim" => found.claim((&kind, &namespace, &name), &spec)?,
                "ResourceClaimTemplate" => {
                    found.claim(
                        (&kind, &namespace, &name),
                        &spec.object("spec").map_err(FieldsError::from)?,
                    )?;
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// Every device, in the order of the documents.
    #[must_use]
    pub fn all(&self) -> &[Device] {
        &self.devices
    }

    /// Every selector of a class or a claim that compiles.
    #[must_use]
    pub fn expressions(&self) -> Vec<Expression<'_>> {
        let of_claims = self.claims.values().flatten().filter_map(|request| request.selectors.as_ref().ok());
        let of_classes = self.classes.values().filter_map(|selectors| selectors.as_ref().ok());
        let mut found: Vec<_> = of_classes.chain(of_claims).flatten().filter_map(Selector::listed).collect();
        found.sort_by(|one, other| one.id.cmp(&other.id));
        found.dedup_by(|one, other| one.id == other.id);
        found
    }

    /// Each device with whether all that selects selects it.
    ///
    /// # Errors
    /// [`NoSelection`] where a document is not there, or a selector does not compile.
    pub fn select(
        &self,
        by: &SelectedBy<'_>,
        options: EvalOptions<'_>,
    ) -> Result<Vec<Selected<'_>>, NoSelection> {
        let request = by.claim.map(|claim| self.request(claim, by.request)).transpose()?;
        let class =
            by.class.or(request.map(|request| request.class.as_str())).filter(|class| !class.is_empty());
        let mut steps: Vec<(String, &[Selector])> = Vec::new();
        if let Some(class) = class {
            let selectors = self.classes.get(class).ok_or_else(|| NoSelection::NoClass(class.to_owned()))?;
            steps.push((format!("class {class}: "), selectors.as_ref().map_err(Clone::clone)?));
        }
        if let (Some(request), Some(claim)) = (request, by.claim) {
            steps.push((format!("claim {claim}: "), request.selectors.as_ref().map_err(Clone::clone)?));
        }
        let compiled = |text: &String| Selector::compile(text, self.features);
        let own: Vec<Selector> = by.selectors.iter().map(compiled).collect::<Result<_, _>>()?;
        steps.push((String::new(), &own));
        let selected = |device| Selected { device, matches: all_match(&steps, device, options) };
        Ok(self.devices.iter().map(selected).collect())
    }

    fn request(&self, claim: &str, request: Option<&str>) -> Result<&Request, NoSelection> {
        let requests = self.claims.get(claim).ok_or_else(|| NoSelection::NoClaim(claim.to_owned()))?;
        let found = match (request, requests.as_slice()) {
            (None, [only]) => Some(only),
            (None, _) => None,
            (Some(name), _) => requests.iter().find(|request| request.name == name),
        };
        found.ok_or_else(|| {
            let known: Vec<&str> = requests.iter().map(|request| request.name.as_str()).collect();
            NoSelection::NoRequest {
                claim: claim.to_owned(),
                request: request.unwrap_or_default().to_owned(),
                known: known.join(", "),
            }
        })
    }

    fn slice(&mut self, spec: &Fields<'_>) -> Result<(), FieldsError> {
        let (driver, pool) = (spec.string("driver")?, spec.object("pool")?.string("name")?);
        for device in spec.objects("devices")? {
            self.devices.push(Device::decode(&driver, &pool, &device)?);
        }
        Ok(())
    }

    fn claim(
        &mut self,
        (kind, namespace, name): (&str, &str, &str),
        spec: &Fields<'_>,
    ) -> Result<(), FieldsError> {
        let owner = format!("claim {}", full_name(namespace, name));
        let mut requests = Vec::new();
        for request in spec.object("devices")?.objects("requests")? {
            let request_name = request.string("name")?;
            for alternative in request.objects("firstAvailable")? {
                let named = format!("{request_name}/{}", alternative.string("name")?);
                requests.push(self.asked(named, &alternative, (kind, name), &owner)?);
            }
            // In older versions the fields of this only kind were in the request itself.
            let exactly = request.optional_object("exactly")?.unwrap_or(request);
            if exactly.get("deviceClassName").is_some() {
                requests.push(self.asked(request_name, &exactly, (kind, name), &owner)?);
            }
        }
        self.claims.insert(full_name(namespace, name), requests);
        Ok(())
    }

    fn asked(
        &self,
        name: String,
        fields: &Fields<'_>,
        of: (&str, &str),
        owner: &str,
    ) -> Result<Request, FieldsError> {
        let class = fields.string("deviceClassName")?;
        Ok(Request { name, class, selectors: self.selectors(fields, of, owner)? })
    }

    /// Compiles the selectors of a class or a request; or returns the error of the first invalid one.
    fn selectors(
        &self,
        fields: &Fields<'_>,
        (kind, name): (&str, &str),
        owner: &str,
    ) -> Result<Result<Vec<Selector>, NoSelection>, FieldsError> {
        let mut compiled = Vec::new();
        for (index, selector) in fields.objects("selectors")?.iter().enumerate() {
            let cel = selector.object("cel")?;
            let origin = Origin::Configuration { kind: kind.to_owned(), name: name.to_owned() };
            let id = ExpressionId { origin, path: cel.path_of("expression") };
            match Selector::compile(&cel.string("expression")?, self.features) {
                Ok(selector) => compiled.push(selector.placed(id)),
                Err(error) => {
                    return Ok(Err(NoSelection::Selector { owner: owner.to_owned(), index, error }));
                }
            }
        }
        Ok(Ok(compiled))
    }
}

fn full_name(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// The first selector that does not match, or fails, decides.
fn all_match(
    steps: &[(String, &[Selector])],
    device: &Device,
    options: EvalOptions<'_>,
) -> Result<bool, SelectionError> {
    for (owner, selectors) in steps {
        for (index, selector) in selectors.iter().enumerate() {
            let failed = |error| SelectionError { owner: owner.clone(), index, error };
            if !selector.matches(device, options).map_err(failed)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
