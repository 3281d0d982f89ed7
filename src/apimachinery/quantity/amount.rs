//! Implements the value of a quantity and its arithmetic. As in Kubernetes, an amount is small (an integer and a power of ten)
//! until an operation overflows, and big from then on; the difference is visible, because only small amounts convert to
//! integers.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::QuantityError;
use super::digits::Digits;

/// The notation of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `12e6`
    DecimalExponent,
    /// `12Mi`
    BinarySi,
    /// `12M`
    DecimalSi,
}

/// An exact decimal number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Amount<'a> {
    /// `value · 10^exponent`
    Small {
        /// The integer, with its sign.
        value: i64,
        /// The power of ten.
        exponent: i32,
    },
    /// `±digits · 10^exponent`, with decimal digits without leading zeros.
    Big {
        /// Whether the number is negative.
        negative: bool,
        /// Decimal digits.
        digits: Cow<'a, str>,
        /// The power of ten.
        exponent: i32,
    },
}

/// A resource quantity. `Display` writes its canonical form.
#[derive(Clone, Debug)]
pub struct Quantity<'a> {
    pub(super) amount: Amount<'a>,
    pub(super) format: Format,
    /// The text that it was parsed from, if that is canonical.
    pub(super) text: Option<&'a str>,
}

impl PartialEq for Quantity<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other).is_eq()
    }
}

/// The most digits of a sum.
const GREATEST_LENGTH: usize = 100_000;

impl<'a> Quantity<'a> {
    /// Creates a quantity from an integer.
    #[must_use]
    pub const fn of_integer(value: i64) -> Self {
        Self { amount: Amount::Small { value, exponent: 0 }, format: Format::DecimalExponent, text: None }
    }

    /// Copies all borrowed parts.
    #[must_use]
    pub fn into_owned(self) -> Quantity<'static> {
        let amount = match self.amount {
            Amount::Small { value, exponent } => Amount::Small { value, exponent },
            Amount::Big { negative, digits, exponent } => {
                Amount::Big { negative, digits: Cow::Owned(digits.into_owned()), exponent }
            }
        };
        // The text is canonical, so formatting gives the same without it.
        Quantity { amount, format: self.format, text: None }
    }

    /// Stores the quantity's own digits with `keep`, such as in an arena.
    ///
    /// # Errors
    /// The errors of `keep`.
    pub fn kept<E>(self, keep: impl FnOnce(&str) -> Result<&'a str, E>) -> Result<Self, E> {
        let amount = match self.amount {
            Amount::Big { negative, digits: Cow::Owned(digits), exponent } => {
                Amount::Big { negative, digits: Cow::Borrowed(keep(&digits)?), exponent }
            }
            amount => amount,
        };
        Ok(Self { amount, ..self })
    }

    /// Compares the number with zero.
    #[must_use]
    pub fn sign(&self) -> Ordering {
        match self.amount {
            Amount::Small { value, .. } => value.cmp(&0),
            Amount::Big { ref digits, .. } if digits.is_empty() => Ordering::Equal,
            Amount::Big { negative: true, .. } => Ordering::Less,
            Amount::Big { negative: false, .. } => Ordering::Greater,
        }
    }

    /// Compares by value; the format does not matter.
    #[must_use]
    pub fn compare(&self, other: &Quantity<'_>) -> Ordering {
        let (sign, other_sign) = (self.sign(), other.sign());
        if sign != other_sign || sign == Ordering::Equal {
            return sign.cmp(&other_sign);
        }
        let (x, y) = (Magnitude::of(&self.amount), Magnitude::of(&other.amount));
        let order = x.top().cmp(&y.top()).then_with(|| x.digits.compare_from_top(&y.digits));
        if sign == Ordering::Less { order.reverse() } else { order }
    }

    /// Returns the integer if the amount is small and whole.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        match self.amount {
            Amount::Small { value, exponent } => scaled_up(value, exponent),
            Amount::Big { .. } => None,
        }
    }

    /// Returns the number in billionths, in which every parsed quantity is a whole number; None if that does not fit.
    ///
    /// ```
    /// use admit_apimachinery::quantity::Quantity;
    ///
    /// let nanos = |text| Quantity::parse(text).ok().and_then(|read| read.nanos());
    /// assert_eq!((nanos("-1.5Ki"), nanos("3n")), (Some(-1_536_000_000_000), Some(3)));
    /// assert_eq!(nanos("1e200"), None, "too large");
    /// ```
    #[must_use]
    pub fn nanos(&self) -> Option<i128> {
        let number = Magnitude::of(&self.amount);
        if number.digits.is_zero() {
            return Some(0);
        }
        let places = u32::try_from(number.exponent.checked_add(9)?).ok()?;
        let digits: i128 = number.digits.text().parse().ok()?;
        let value = digits.checked_mul(10_i128.checked_pow(places)?)?;
        if number.negative { value.checked_neg() } else { Some(value) }
    }

    /// Returns the number times `10^places`, rounded up to an integer and limited to the range: Go's `ScaledValue`.
    ///
    /// ```
    /// use admit_apimachinery::quantity::Quantity;
    ///
    /// let scaled = |text, places| Quantity::parse(text).map(|read| read.scaled_value(places));
    /// assert_eq!((scaled("1.5", 0), scaled("1500u", 3), scaled("2Ki", 0)), (Ok(2), Ok(2), Ok(2_048)));
    /// ```
    #[must_use]
    pub fn scaled_value(&self, places: u16) -> i64 {
        let mut number = Magnitude::of(&self.amount);
        let exponent = number.exponent.saturating_add(i32::from(places));
        let distance = usize::try_from(exponent.unsigned_abs()).unwrap_or(usize::MAX);
        if exponent < 0 {
            number.digits = number.digits.drop_last_rounding_up(distance).0;
        } else if !number.digits.is_zero() {
            // An i64 has 19 digits: more zeros overflow as well.
            number.digits.append_zeros(distance.min(20));
        }
        let value =
            if number.digits.is_zero() { 0 } else { number.digits.text().parse().unwrap_or(i64::MAX) };
        if number.negative { value.saturating_neg() } else { value }
    }

    /// Returns a double near the value: the rounded digits times the rounded power of ten.
    #[must_use]
    pub fn approximate(&self) -> f64 {
        let (base, exponent) = match &self.amount {
            Amount::Small { value, exponent } => (*value as f64, *exponent),
            Amount::Big { negative, digits, exponent } => {
                let magnitude = digits.parse::<f64>().unwrap_or(0.0);
                (if *negative { -magnitude } else { magnitude }, *exponent)
            }
        };
        if exponent == 0 { base } else { base * power_of_ten(exponent) }
    }

    /// Returns the sum, in the format of the first operand that is not zero.
    ///
    /// # Errors
    /// When the sum would have too many digits.
    pub fn plus(&self, other: &Self) -> Result<Self, QuantityError> {
        self.combined(other, &other.amount)
    }

    /// Returns the difference, in the format of the first operand that is not zero.
    ///
    /// # Errors
    /// As [`Self::plus`].
    pub fn minus(&self, other: &Self) -> Result<Self, QuantityError> {
        let negated = match other.amount.clone() {
            Amount::Small { value, exponent } => Amount::Small { value: value.wrapping_neg(), exponent },
            Amount::Big { negative, digits, exponent } => {
                Amount::Big { negative: !negative, digits, exponent }
            }
        };
        self.combined(other, &negated)
    }

    /// Adds amounts; a zero takes the format of the other operand.
    fn combined(&self, other: &Self, amount: &Amount<'a>) -> Result<Self, QuantityError> {
        let format = if self.sign().is_eq() { other.format } else { self.format };
        let small = match (&self.amount, amount) {
            (Amount::Small { value, exponent }, Amount::Small { value: v, exponent: e }) => {
                add_small((*value, *exponent), (*v, *e))
            }
            _ => None,
        };
        let amount = match small {
            Some((value, exponent)) => Amount::Small { value, exponent },
            None => add_big(&self.amount, amount)?,
        };
        Ok(Self { amount, format, text: None })
    }
}

/// Adds at the smaller of two exponents; None on overflow.
fn add_small((x, ex): (i64, i32), (y, ey): (i64, i32)) -> Option<(i64, i32)> {
    if y == 0 {
        return Some((x, ex));
    }
    if x == 0 {
        return Some((y, ey));
    }
    let exponent = ex.min(ey);
    let x = scaled_up(x, ex.checked_sub(exponent)?)?;
    let y = scaled_up(y, ey.checked_sub(exponent)?)?;
    Some((x.checked_add(y)?, exponent))
}

/// Returns `value · 10^places`; None on overflow or for negative `places`.
pub(super) fn scaled_up(value: i64, places: i32) -> Option<i64> {
    let places = u32::try_from(places).ok()?;
    if value == 0 { Some(0) } else { value.checked_mul(10_i64.checked_pow(places)?) }
}

/// Adds at the smaller of two exponents, with as many digits as that takes up to a limit.
fn add_big<'a>(x: &Amount<'_>, y: &Amount<'_>) -> Result<Amount<'a>, QuantityError> {
    let (x, y) = (Magnitude::of(x), Magnitude::of(y));
    let exponent = x.exponent.min(y.exponent);
    let (x, y) = (x.aligned(exponent)?, y.aligned(exponent)?);
    let (negative, digits) = if x.negative == y.negative {
        (x.negative, x.digits.plus(&y.digits))
    } else if x.digits.compare(&y.digits).is_ge() {
        (x.negative, x.digits.minus(&y.digits))
    } else {
        (y.negative, y.digits.minus(&x.digits))
    };
    Ok(Amount::Big { negative, digits: digits.text().into(), exponent })
}

/// An amount with its decimal digits.
pub(super) struct Magnitude {
    pub(super) negative: bool,
    pub(super) digits: Digits,
    pub(super) exponent: i32,
}

impl Magnitude {
    pub(super) fn of(amount: &Amount<'_>) -> Self {
        match amount {
            Amount::Small { value, exponent } => Self {
                negative: *value < 0,
                digits: Digits::parse(&value.unsigned_abs().to_string()),
                exponent: *exponent,
            },
            Amount::Big { negative, digits, exponent } => {
                Self { negative: *negative, digits: Digits::parse(digits), exponent: *exponent }
            }
        }
    }

    /// Returns the smallest power of ten above the number.
    fn top(&self) -> i64 {
        i64::try_from(self.digits.len()).unwrap_or(i64::MAX).saturating_add(i64::from(self.exponent))
    }

    /// Returns the same number with a smaller exponent and more digits.
    fn aligned(mut self, exponent: i32) -> Result<Self, QuantityError> {
        let places = usize::try_from(self.exponent.saturating_sub(exponent)).unwrap_or(0);
        if places > GREATEST_LENGTH && !self.digits.is_zero() {
            return Err(QuantityError::TooFarApart);
        }
        self.digits.append_zeros(places);
        self.exponent = exponent;
        Ok(self)
    }
}

/// Returns Go's `math.Pow10`: two table entries multiplied or divided, so not always the nearest double.
fn power_of_ten(exponent: i32) -> f64 {
    const STEP: u32 = 32;
    let entry = |n: u32| format!("1e{n}").parse::<f64>().unwrap_or(f64::INFINITY);
    let magnitude = exponent.unsigned_abs();
    let (coarse, fine) = (magnitude.wrapping_div(STEP).wrapping_mul(STEP), magnitude.wrapping_rem(STEP));
    match exponent {
        0..=308 => entry(coarse) * entry(fine),
        -323..=-1 => format!("1e-{coarse}").parse::<f64>().unwrap_or(0.0) / entry(fine),
        309.. => f64::INFINITY,
        _ => 0.0,
    }
}
