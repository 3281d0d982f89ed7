//! Lists the named formats of CEL's format library with their patterns.

use super::whole::{LABEL, NAME};

/// A named format whose strings a pattern describes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Format {
    Label,
    Subdomain,
    LetterFirst,
    LabelValue,
    QualifiedName,
}

impl Format {
    /// Finds a format by the name of its CEL function.
    pub(super) fn of(function: &str) -> Option<Self> {
        Some(match function {
            "format.dns1123Label" => Self::Label,
            "format.dns1123Subdomain" => Self::Subdomain,
            "format.dns1035Label" => Self::LetterFirst,
            "format.labelValue" => Self::LabelValue,
            "format.qualifiedName" => Self::QualifiedName,
            _ => return None,
        })
    }

    /// Returns the pattern and the maximum length.
    pub(super) const fn pattern(self) -> (&'static str, u16) {
        match self {
            Self::Label => (LABEL, 63),
            Self::Subdomain => (NAME, 253),
            Self::LetterFirst => ("^[a-z]([-a-z0-9]*[a-z0-9])?$", 63),
            Self::LabelValue => ("^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$", 63),
            Self::QualifiedName => (
                "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?\
                 ([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$",
                63,
            ),
        }
    }
}
