//! A definition that tests of editors speak about.

use std::fmt::Write as _;

/// The definition `shops.example.com` of one version, whose schema has these properties: lines of YAML, which are indented here.
///
/// ```
/// let text = testing::shops("spec: {type: object}");
/// assert!(text.ends_with("\n          spec: {type: object}\n"));
/// ```
#[must_use]
pub fn shops(properties: &str) -> String {
    let mut text = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: shops, singular: shop, listKind: ShopList, kind: Shop}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
"
    .to_owned();
    for line in properties.lines() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "          {line}");
    }
    text
}
