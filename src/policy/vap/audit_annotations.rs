//! Parses the audit annotations of a policy: their unique keys, and the expressions of their values.

use std::collections::HashSet;

use admit_apimachinery::field_error::{BadValue, FieldError};
use admit_apimachinery::{go, labels};
use serde_json::json;

use super::expression::{Expression, Role};
use super::policy::{AuditAnnotation, Reader};
use crate::read::decode::{DecodeError, Fields};

const MAX_AUDIT_ANNOTATIONS: usize = 20;
/// Bytes of one `valueExpression`.
const MAX_VALUE_EXPRESSION: usize = 5 * 1024;

impl Reader {
    pub(super) fn audit_annotations(
        &mut self,
        path: &str,
        policy: &str,
        items: &[Fields<'_>],
    ) -> Result<Vec<AuditAnnotation>, DecodeError> {
        if items.len() > MAX_AUDIT_ANNOTATIONS {
            let detail = format!("must not have more than {MAX_AUDIT_ANNOTATIONS} auditAnnotations");
            self.errors.push(FieldError::invalid(path, shown_annotations(items)?, detail));
        }
        let mut keys: HashSet<String> = HashSet::with_capacity(items.len());
        let mut annotations = Vec::with_capacity(items.len());
        for item in items {
            let key = item.string("key")?;
            let path = item.path_of("key");
            if policy.is_empty() {
                let detail = "requires metadata.name be non-empty";
                self.errors.push(FieldError::invalid(&path, key.as_str(), detail));
            } else {
                let full = format!("{policy}/{key}");
                self.invalid(&path, &full, labels::key(&full));
            }
            let expression = self.value_expression(item)?;
            if keys.contains(&key) {
                self.errors.push(FieldError::duplicate(path, key.as_str()));
            }
            keys.insert(key.clone());
            annotations.extend(expression.map(|expression| AuditAnnotation { key, expression }));
        }
        Ok(annotations)
    }

    fn value_expression(&mut self, fields: &Fields<'_>) -> Result<Option<Expression>, DecodeError> {
        let text = fields.string("valueExpression")?;
        let path = fields.path_of("valueExpression");
        let trimmed = text.trim();
        if trimmed.is_empty() {
            self.errors.push(FieldError::required(path, "valueExpression is not specified"));
            return Ok(None);
        }
        if trimmed.len() > MAX_VALUE_EXPRESSION {
            let detail = format!("must not exceed {MAX_VALUE_EXPRESSION} bytes in length");
            self.errors.push(FieldError::required(path, detail));
            return Ok(None);
        }
        let compiled = self.shown_as(&text, Role::Annotation, &path, trimmed);
        Ok(compiled.map(|expression| expression.written_as(&text)))
    }
}

/// Annotations as Kubernetes shows its internal form of them.
fn shown_annotations(items: &[Fields<'_>]) -> Result<BadValue, DecodeError> {
    let shown: Vec<String> = items
        .iter()
        .map(|item| {
            let (key, expression) = (json!(item.string("key")?), json!(item.string("valueExpression")?));
            Ok(format!(
                "{{\"Key\":{},\"ValueExpression\":{}}}",
                go::json::text(&key),
                go::json::text(&expression)
            ))
        })
        .collect::<Result<_, _>>()?;
    Ok(BadValue::Verbatim(format!("[{}]", shown.join(","))))
}
