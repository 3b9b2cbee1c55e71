//! Bars as PNG pictures, for mails. Pure.
//!
//! A picture holds no text and so needs no font: what it shows stands beside it in words, for those who see no pictures, too. Its
//! background is transparent, so that it fits a light page and a dark one. Drawn at twice the size at which it is shown; 120 to 300 bytes each.

use png::{BitDepth, ColorType, Compression, Encoder, EncodingError};

/// Width and height of a bar's picture, in pixels.
const BAR: (usize, usize) = (400, 20);
/// Height of a picture of columns, and the width of one column with the gap behind it.
const COLUMNS: (usize, usize) = (192, 160);
/// A column fills so much of its width.
const COLUMN: usize = 112;
/// Height of the line that columns stand on.
const BASE: usize = 4;
/// At most so many columns are drawn.
pub(crate) const MAX_COLUMNS: usize = 14;
/// The step in which lengths are drawn: equal pictures are sent once.
const STEP: u8 = 5;

/// Transparent, the colour of money that is spent for nothing, and a grey: each readable on white and on black.
const PALETTE: [u8; 9] = [0, 0, 0, 0xd9, 0x77, 0x06, 0x8b, 0x94, 0x9e];
const OPACITY: [u8; 3] = [0, 255, 255];
const NOTHING: u8 = 0;
const AMOUNT: u8 = 1;
const GREY: u8 = 2;

/// How long something is drawn, in per cent of the longest: in steps of five, and never as nothing what is not nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Length(u8);

impl Length {
    /// That of an amount, where the largest is so much.
    pub(crate) fn of(amount: i64, largest: i64) -> Self {
        if amount <= 0 || largest <= 0 {
            return Self(0);
        }
        let percent = i128::from(amount.min(largest)) * 100 / i128::from(largest);
        let percent = u8::try_from(percent).unwrap_or(100);
        Self(percent.next_multiple_of(STEP).clamp(STEP, 100))
    }

    /// In per cent.
    pub(crate) fn percent(self) -> u8 {
        self.0
    }

    fn on(self, pixels: usize) -> usize {
        pixels * usize::from(self.0) / 100
    }
}

/// What a column shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    /// An amount.
    Known(Length),
    /// There is something, and nobody knows how much: a grey hatching of full height, which no amount looks like.
    Unknown,
}

/// A bar from left to right.
pub(crate) fn bar(length: Length) -> Result<Vec<u8>, EncodingError> {
    let (width, height) = BAR;
    let filled = length.on(width);
    png(width, height, |x, _| if x < filled { AMOUNT } else { NOTHING })
}

/// Columns on a line, each in a slot of the same width. Those beyond [`MAX_COLUMNS`] are left out.
pub(crate) fn columns(columns: &[Column]) -> Result<Vec<u8>, EncodingError> {
    let columns = columns.get(..MAX_COLUMNS).unwrap_or(columns);
    let (height, slot) = COLUMNS;
    let gap = (slot - COLUMN) / 2;
    let room = height - BASE;
    png(slot * columns.len().max(1), height, |x, y| {
        if y >= room {
            return GREY;
        }
        let is_column = (gap..gap + COLUMN).contains(&(x % slot));
        match columns.get(x / slot) {
            Some(Column::Known(length)) if is_column && room - y <= length.on(room) => AMOUNT,
            Some(Column::Unknown) if is_column && (x + y) % 16 < 4 => GREY,
            _ => NOTHING,
        }
    })
}

/// A picture of which each pixel is one of the palette's colours.
fn png(width: usize, height: usize, colour: impl Fn(usize, usize) -> u8) -> Result<Vec<u8>, EncodingError> {
    let mut pixels = Vec::with_capacity(width.div_ceil(4) * height);
    for y in 0..height {
        // Four pixels a byte, the leftmost in the highest bits.
        for x in (0..width).step_by(4) {
            let byte = (x..x + 4).fold(0_u8, |byte, x| byte << 2 | if x < width { colour(x, y) } else { NOTHING });
            pixels.push(byte);
        }
    }
    let size = |pixels: usize| u32::try_from(pixels).unwrap_or(u32::MAX);
    let mut picture = Vec::new();
    let mut encoder = Encoder::new(&mut picture, size(width), size(height));
    encoder.set_color(ColorType::Indexed);
    encoder.set_depth(BitDepth::Two);
    encoder.set_palette(PALETTE.as_slice());
    encoder.set_trns(OPACITY.as_slice());
    encoder.set_compression(Compression::High);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    writer.finish()?;
    Ok(picture)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use png::{Decoder, Transformations};
    use std::io::Cursor;

    /// Width, height, and each pixel with its opacity.
    fn decoded(picture: &[u8]) -> (usize, usize, Vec<[u8; 4]>) {
        let mut decoder = Decoder::new(Cursor::new(picture));
        decoder.set_transformations(Transformations::EXPAND | Transformations::ALPHA);
        let mut reader = decoder.read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        let size = (info.width.try_into().unwrap(), info.height.try_into().unwrap());
        (size.0, size.1, pixels.chunks(4).map(|pixel| pixel.try_into().unwrap()).collect())
    }

    #[test]
    fn lengths_are_of_the_largest_and_never_nothing_for_something() {
        for (amount, largest, percent) in
            [(0, 0, 0), (0, 9, 0), (-3, 9, 0), (1, i64::MAX, 5), (50, 100, 50), (51, 100, 55), (9, 9, 100), (9, 3, 100)]
        {
            assert_eq!(Length::of(amount, largest).percent(), percent, "{amount} of {largest}");
        }
    }

    #[test]
    fn a_bar_is_as_long_as_it_says_and_transparent_behind() {
        for percent in [0_i64, 5, 50, 100] {
            let picture = bar(Length::of(percent, 100)).unwrap();
            assert!(picture.len() < 400, "{} bytes", picture.len());
            let (width, height, pixels) = decoded(&picture);
            assert_eq!((width, height), BAR);
            let filled = pixels[..width].iter().filter(|pixel| pixel[3] == 255).count();
            assert_eq!(filled, width * usize::try_from(percent).unwrap() / 100);
            assert!(pixels[..filled].iter().all(|pixel| pixel[..3] == PALETTE[3..6]));
        }
    }

    #[test]
    fn columns_stand_side_by_side_and_what_is_not_known_looks_like_no_amount() {
        let of = |amount| Column::Known(Length::of(amount, 100));
        let picture = columns(&[of(100), of(0), of(50), Column::Unknown]).unwrap();
        assert!(picture.len() < 4_000, "{} bytes", picture.len());
        let (width, height, pixels) = decoded(&picture);
        assert_eq!((width, height), (4 * COLUMNS.1, COLUMNS.0));
        let amounts = |slot: usize| {
            let x = slot * COLUMNS.1 + COLUMNS.1 / 2;
            (0..height).filter(|y| pixels[y * width + x] == [0xd9, 0x77, 0x06, 255]).count()
        };
        let room = height - BASE;
        assert_eq!([amounts(0), amounts(1), amounts(2), amounts(3)], [room, 0, room / 2, 0]);
        let x = 3 * COLUMNS.1 + COLUMNS.1 / 2;
        let hatched = (0..room).filter(|y| pixels[y * width + x][3] == 255).count();
        assert!((room / 5..room / 2).contains(&hatched), "{hatched}");
        // The line that they stand on goes through.
        assert!(pixels[width * (height - 1)..].iter().all(|pixel| pixel[..3] == PALETTE[6..9]));
    }

    #[test]
    fn there_are_never_more_columns_than_the_picture_has_room_for() {
        let many = vec![Column::Unknown; 1_000];
        assert_eq!(columns(&many).unwrap(), columns(&many[..MAX_COLUMNS]).unwrap());
        assert!(columns(&[]).is_ok());
    }
}
