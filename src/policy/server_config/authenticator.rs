//! Compiles the JWT authenticators of a configuration: which tokens each accepts, and how it maps claims to a user.

use admit_apimachinery::field_error::FieldError;

use super::expressions::{About, Compiled, Yields};
use super::token::Audiences;
use crate::read::decode::{DecodeError, Fields};

#[derive(Debug)]
pub(super) struct Authenticator {
    pub(super) issuer: String,
    pub(super) audiences: Audiences,
    pub(super) username: Mapping,
    pub(super) groups: Mapping,
    pub(super) uid: Mapping,
    /// Keys with the expressions of their values.
    pub(super) extra: Vec<(String, Compiled)>,
    /// Claims with the values that they must have.
    pub(super) required: Vec<(String, String)>,
    pub(super) claim_rules: Vec<Rule>,
    pub(super) user_rules: Vec<Rule>,
}

#[derive(Debug)]
pub(super) enum Mapping {
    Nothing,
    Claim { name: String, prefix: String },
    Expression(Compiled),
}

#[derive(Debug)]
pub(super) struct Rule {
    pub(super) expression: Compiled,
    pub(super) message: String,
}

/// Why a configuration cannot be read.
pub(super) enum Unread {
    Type(DecodeError),
    Expression(Box<FieldError>),
}

impl From<DecodeError> for Unread {
    fn from(error: DecodeError) -> Self {
        Self::Type(error)
    }
}

impl From<Box<FieldError>> for Unread {
    fn from(error: Box<FieldError>) -> Self {
        Self::Expression(error)
    }
}

impl Authenticator {
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, Unread> {
        let issuer = fields.object("issuer")?;
        let mappings = fields.object("claimMappings")?;
        let mut authenticator = Self {
            issuer: issuer.string("url")?,
            audiences: Audiences::new(issuer.strings("audiences")?),
            username: Mapping::read(&mappings.object("username")?)?,
            groups: Mapping::read(&mappings.object("groups")?)?,
            uid: Mapping::read(&mappings.object("uid")?)?,
            extra: Vec::new(),
            required: Vec::new(),
            claim_rules: Vec::new(),
            user_rules: Vec::new(),
        };
        for extra in mappings.objects("extra")? {
            let (text, at) = (extra.string("valueExpression")?, extra.path_of("valueExpression"));
            let (expression, _) = About::Claims.compile(Yields::Anything, &text, &at)?;
            authenticator.extra.push((extra.string("key")?, expression));
        }
        for rule in fields.objects("claimValidationRules")? {
            let claim = rule.string("claim")?;
            if claim.is_empty() {
                authenticator.claim_rules.push(Rule::read(About::Claims, &rule)?);
            } else {
                authenticator.required.push((claim, rule.string("requiredValue")?));
            }
        }
        let rules = fields.objects("userValidationRules")?;
        authenticator.user_rules =
            rules.iter().map(|rule| Rule::read(About::User, rule)).collect::<Result<_, _>>()?;
        Ok(authenticator)
    }

    /// Returns the expressions in the order in which they are evaluated on a token.
    pub(super) fn expressions(&self) -> impl Iterator<Item = &Compiled> {
        let mappings = [&self.username, &self.groups, &self.uid].into_iter().filter_map(Mapping::expression);
        let rules = self.claim_rules.iter().chain(&self.user_rules).map(|rule| &rule.expression);
        mappings.chain(self.extra.iter().map(|(_, value)| value)).chain(rules)
    }
}

impl Mapping {
    fn read(fields: &Fields<'_>) -> Result<Self, Unread> {
        let (claim, text) = (fields.string("claim")?, fields.string("expression")?);
        Ok(if !claim.is_empty() {
            Self::Claim { name: claim, prefix: fields.string("prefix")? }
        } else if text.is_empty() {
            Self::Nothing
        } else {
            let compiled = About::Claims.compile(Yields::Anything, &text, &fields.path_of("expression"))?;
            Self::Expression(compiled.0)
        })
    }

    const fn expression(&self) -> Option<&Compiled> {
        match self {
            Self::Expression(expression) => Some(expression),
            Self::Nothing | Self::Claim { .. } => None,
        }
    }
}

impl Rule {
    fn read(about: About, fields: &Fields<'_>) -> Result<Self, Unread> {
        let text = fields.string("expression")?;
        let (expression, _) = about.compile(Yields::Truth, &text, &fields.path_of("expression"))?;
        Ok(Self { expression, message: fields.string("message")? })
    }
}
