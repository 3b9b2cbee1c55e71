//! What a message takes in memory once it is decoded, counted in its bytes before.
//!
//! An empty message is two bytes on the wire and up to a kilobyte in memory: 4 MiB of them would be more than a gigabyte. The sizes are those of the
//! generated types (`build.rs`), so a field that joins the contract is counted as well. A message that comes twice where one belongs is counted
//! twice, though decoding merges the two. Not counted is what a list reserves while it grows: at most as much again as it holds.

/// A field that brings memory of its own.
#[derive(Clone, Copy, Debug)]
enum Content {
    /// A message, by its place in [`MESSAGES`].
    Message(usize),
    /// A text: its length, and the place in a list that holds it.
    Text,
}

/// One type.
#[derive(Debug)]
struct Message {
    /// Its own size in memory.
    bytes: usize,
    /// By number, the fields that take more.
    fields: &'static [(u32, Content)],
}

include!(concat!(env!("OUT_DIR"), "/messages.rs"));

/// Not a message of protobuf, or one with groups, which the contract does not have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Memory of the envelope in these bytes, in bytes; counting ends soon after `limit` was passed.
pub(crate) fn of_envelope(bytes: &[u8], limit: usize) -> Result<usize, Malformed> {
    let mut total = 0;
    add(ENVELOPE, bytes, limit, &mut total)?;
    Ok(total)
}

/// No message holds itself (`build.rs` looks), so this ends.
fn add(index: usize, mut bytes: &[u8], limit: usize, total: &mut usize) -> Result<(), Malformed> {
    let message = MESSAGES.get(index).ok_or(Malformed)?;
    *total = total.saturating_add(message.bytes);
    while !bytes.is_empty() && *total <= limit {
        let key = varint(&mut bytes)?;
        let field = u32::try_from(key >> 3).map_err(|_| Malformed)?;
        match key & 7 {
            0 => drop(varint(&mut bytes)?),
            1 => drop(take(&mut bytes, 8)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).map_err(|_| Malformed)?;
                let content = take(&mut bytes, length)?;
                match message.fields.iter().find(|(number, _)| *number == field) {
                    Some((_, Content::Message(child))) => add(*child, content, limit, total)?,
                    Some((_, Content::Text)) => {
                        *total = total.saturating_add(size_of::<String>()).saturating_add(length);
                    }
                    None => {}
                }
            }
            5 => drop(take(&mut bytes, 4)?),
            _ => return Err(Malformed),
        }
    }
    Ok(())
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8], Malformed> {
    let (taken, rest) = bytes.split_at_checked(length).ok_or(Malformed)?;
    *bytes = rest;
    Ok(taken)
}

fn varint(bytes: &mut &[u8]) -> Result<u64, Malformed> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let [byte] = *take(bytes, 1)? else { return Err(Malformed) };
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Malformed)
}
