//! Validates names of signers: `example.com/name` (pkg/apis/core/validation/validation.go, `ValidateSignerName`).

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go;
use admit_apimachinery::names::NameRule;

use crate::kinds::field::Field;

const LONGEST_DOMAIN: i64 = 253;
/// Most bytes of a name: a domain, a slash, a subdomain, a dot and a label.
const LONGEST: i64 = 571;

pub(crate) fn validate(signer: &Field<'_>, errors: &mut FieldErrors) {
    let text = signer.text();
    if text.is_empty() {
        return errors.add(|| signer.required(""));
    }
    let Some((domain, path)) = text.split_once('/').filter(|(_, path)| !path.contains('/')) else {
        let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return errors.add(|| signer.invalid(why));
    };
    if is_longer(domain, LONGEST_DOMAIN) {
        errors.add(|| signer.too_long(LONGEST_DOMAIN));
    }
    parts(signer, domain, NameRule::Label, errors);
    if !domain.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        errors.add(|| signer.invalid_as(domain, why));
    }
    parts(signer, path, NameRule::Subdomain, errors);
    if is_longer(text, LONGEST) {
        errors.add(|| signer.too_long(LONGEST));
    }
}

fn is_longer(text: &str, most: i64) -> bool {
    i64::try_from(text.len()).is_ok_and(|length| length > most)
}

/// Reports the first part that breaks the rule.
fn parts(signer: &Field<'_>, text: &str, rule: NameRule, errors: &mut FieldErrors) {
    let broken = text.split('.').map(|part| (part, rule.problems(part, false)));
    if let Some((part, problems)) = broken.into_iter().find(|(_, problems)| !problems.is_empty()) {
        for problem in problems {
            let why = format!("validating label {}: {problem}", go::quote(part));
            errors.add(|| signer.invalid_as(text, why));
        }
    }
}
