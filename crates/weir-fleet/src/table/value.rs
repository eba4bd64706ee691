//! Values as floats.
//!
//! A value of a series is an integer times a power of ten. The column `value` has the product, and
//! `raw` the integer where the float does not return to it.

/// Returns a value in the unit of its series.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a column of floats")]
pub fn scaled(raw: i64, scale: i8) -> f64 {
    let power = 10_f64.powi(i32::from(scale).abs());
    // A quotient is rounded once, unlike a product with a tenth.
    if scale < 0 { raw as f64 / power } else { raw as f64 * power }
}

/// Returns the nearest integer that [`scaled`] could have been given; `None` if there is none.
#[must_use]
pub fn unscaled(value: f64, scale: i8) -> Option<i64> {
    let power = 10_f64.powi(i32::from(scale).abs());
    let raw = if scale < 0 { value * power } else { value / power }.round();
    // Beyond that, neighbouring floats are more than one apart.
    #[expect(clippy::cast_possible_truncation, reason = "checked")]
    (raw.abs() < 9.0e15).then_some(raw as i64)
}

/// Returns `value`, and `raw` if it is needed.
#[must_use]
pub fn stored(raw: i64, scale: i8) -> (f64, Option<i64>) {
    let value = scaled(raw, scale);
    (value, (unscaled(value, scale) != Some(raw)).then_some(raw))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_integer_returns(raw in any::<i64>(), shift in 0..63_u32, scale in -18_i8..18) {
            let raw = raw >> shift;
            let (value, exact) = stored(raw, scale);
            prop_assert_eq!(exact.or_else(|| unscaled(value, scale)), Some(raw));
        }
    }

    #[test]
    fn ordinary_values_need_no_second_column() {
        for (raw, scale) in [(0, 0), (1_234, -3), (-5, 2), (1 << 50, 0), (1 << 50, -9)] {
            assert_eq!(stored(raw, scale).1, None, "{raw} {scale}");
        }
        assert_eq!(stored(i64::MAX, 0).1, Some(i64::MAX));
    }
}
