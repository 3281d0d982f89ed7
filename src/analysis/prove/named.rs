//! The formats that expressions name, as patterns.

use super::whole::{LABEL, NAME};

/// A format that expressions name, of which it is written out which texts are of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Format {
    Label,
    Subdomain,
    LetterFirst,
    LabelValue,
    QualifiedName,
}

impl Format {
    /// By the name of the function.
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

    /// The pattern, and how long texts may be.
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
