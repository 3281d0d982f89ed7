//! Lists the tokens that may follow at each point of the grammar where an error can occur. cel-go's messages list these sets, and its
//! error recovery skips to one of them, so they follow its grammar (`parser/gen/CEL.g4`) point by point.

use super::token::{Kind, TokenSet};

/// The rules of the grammar whose nesting is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    Start,
    Expr,
    Or,
    And,
    Relation,
    Calc,
    Unary,
    Member,
    Primary,
    Args,
    ListItems,
    Fields,
    Field,
    MapEntries,
    EscapedIdent,
    OptionalExpr,
    Literal,
}

pub(crate) const RULES: usize = 17;

/// A place in a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The end of a rule; the enclosing rule determines what follows.
    End,
    Eof,
    /// The start of an expression inside a rule; unlike for [`Self::Unary`], its absence is reported here.
    Expr,
    Ternary,
    TernaryColon,
    OrLoop,
    AndLoop,
    RelationLoop,
    CalcLoop,
    Unary,
    Nots,
    Minuses,
    MemberLoop,
    Selector,
    MemberArgs,
    MemberArgsEnd,
    IndexStart,
    IndexEnd,
    Primary,
    CallArgs,
    CallArgsEnd,
    NestedEnd,
    ListStart,
    ListComma,
    ListEnd,
    MapStart,
    MapComma,
    MapEnd,
    FieldsStart,
    FieldsComma,
    FieldsEnd,
    CommaLoop,
    FirstFieldColon,
    NextFieldColon,
    FirstEntryColon,
    NextEntryColon,
    EscapedIdent,
}

pub(crate) const RELATIONS: TokenSet = TokenSet::of(&[
    Kind::Equals,
    Kind::NotEquals,
    Kind::In,
    Kind::Less,
    Kind::LessEquals,
    Kind::GreaterEquals,
    Kind::Greater,
]);
pub(crate) const PRODUCTS: TokenSet = TokenSet::of(&[Kind::Star, Kind::Slash, Kind::Percent]);
pub(crate) const SUMS: TokenSet = TokenSet::of(&[Kind::Plus, Kind::Minus]);
pub(crate) const SELECTORS: TokenSet = TokenSet::of(&[Kind::Dot, Kind::LeftBracket]);
pub(crate) const LITERALS: TokenSet = TokenSet::of(&[
    Kind::True,
    Kind::False,
    Kind::Null,
    Kind::Float,
    Kind::Int,
    Kind::Uint,
    Kind::String,
    Kind::Bytes,
]);
/// What starts an operand of a unary operator; the minus is that of a negative literal.
pub(crate) const FIRST_OF_MEMBER: TokenSet =
    TokenSet::of(&[Kind::LeftBracket, Kind::LeftBrace, Kind::LeftParen, Kind::Dot, Kind::Minus, Kind::Ident])
        .or(LITERALS);
pub(crate) const FIRST_OF_EXPR: TokenSet = FIRST_OF_MEMBER.or(TokenSet::of(&[Kind::Not]));
pub(crate) const FIRST_OF_OPTIONAL_EXPR: TokenSet = FIRST_OF_EXPR.or(TokenSet::of(&[Kind::Question]));
pub(crate) const FIRST_OF_FIELD: TokenSet = TokenSet::of(&[Kind::Question, Kind::Ident, Kind::EscapedIdent]);

impl Place {
    /// The tokens that may come next within the rule.
    pub(crate) const fn next(self) -> TokenSet {
        match self {
            Self::End => TokenSet::EMPTY,
            Self::Eof => TokenSet::of(&[Kind::Eof]),
            Self::Expr | Self::Unary | Self::Nots => FIRST_OF_EXPR,
            Self::Minuses | Self::Primary => FIRST_OF_MEMBER,
            Self::Ternary => TokenSet::of(&[Kind::Question]),
            Self::TernaryColon
            | Self::FirstFieldColon
            | Self::NextFieldColon
            | Self::FirstEntryColon
            | Self::NextEntryColon => TokenSet::of(&[Kind::Colon]),
            Self::OrLoop => TokenSet::of(&[Kind::Or]),
            Self::AndLoop => TokenSet::of(&[Kind::And]),
            Self::RelationLoop => RELATIONS,
            Self::CalcLoop => PRODUCTS.or(SUMS),
            Self::MemberLoop | Self::Selector => SELECTORS,
            Self::MemberArgs | Self::CallArgs => FIRST_OF_EXPR.or(TokenSet::of(&[Kind::RightParen])),
            Self::MemberArgsEnd | Self::CallArgsEnd | Self::NestedEnd => TokenSet::of(&[Kind::RightParen]),
            Self::IndexStart => FIRST_OF_OPTIONAL_EXPR,
            Self::IndexEnd | Self::ListEnd => TokenSet::of(&[Kind::RightBracket]),
            Self::ListStart => FIRST_OF_OPTIONAL_EXPR.or(Self::ListComma.next()),
            Self::ListComma => TokenSet::of(&[Kind::Comma, Kind::RightBracket]),
            Self::MapStart => FIRST_OF_OPTIONAL_EXPR.or(Self::MapComma.next()),
            Self::FieldsStart => FIRST_OF_FIELD.or(Self::FieldsComma.next()),
            Self::MapComma | Self::FieldsComma => TokenSet::of(&[Kind::Comma, Kind::RightBrace]),
            Self::MapEnd | Self::FieldsEnd => TokenSet::of(&[Kind::RightBrace]),
            Self::CommaLoop => TokenSet::of(&[Kind::Comma]),
            Self::EscapedIdent => TokenSet::of(&[Kind::Ident, Kind::EscapedIdent]),
        }
    }

    /// Whether the rule may end here.
    pub(crate) const fn may_end(self) -> bool {
        matches!(
            self,
            Self::End
                | Self::Ternary
                | Self::OrLoop
                | Self::AndLoop
                | Self::RelationLoop
                | Self::CalcLoop
                | Self::MemberLoop
                | Self::CommaLoop
        )
    }
}
