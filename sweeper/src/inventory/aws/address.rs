//! One Elastic IP address, read by itself right before it is given back, with what lists do not tell of it.
//!
//! Needs beside what lists need `ec2:DescribeAddressesAttribute` and `ec2:DescribeAddressTransfers`.

use aws_sdk_ec2::types::{self, AddressAttributeName, AddressTransferStatus, Filter};
use model::address::Told;

use super::{Accounts, collect::list, machine::place, parse, place::Place, storage::ADDRESSES};
use crate::inventory::{
    Address, Failure, Scope,
    reader::{Api, Refused},
};

const ATTRIBUTE: Api = Api::ec2("ec2:DescribeAddressesAttribute");
const TRANSFERS: Api = Api::ec2("ec2:DescribeAddressTransfers");
/// What EC2 calls each of its addresses by itself ends so.
const OWN_NAMES: [&str; 2] = [".amazonaws.com", ".amazonaws.com.cn"];

/// An address as EC2 describes it at this moment.
#[derive(Clone, Debug)]
pub struct OneAddress {
    /// As lists have it.
    pub address: Address,
    /// The name that leads back from it.
    pub reverse_name: Told,
    /// The account that it has been offered to.
    pub offered_to: Told,
}

/// One address as lists have it, by its allocation; none if the account does not have it any more. One call.
///
/// # Errors
/// What could not be read, and why.
pub async fn address(accounts: &Accounts, scope: &Scope, allocation: &str) -> Result<Option<Address>, Failure> {
    let place = place(accounts, scope)?;
    let addresses = place.pages(
        ADDRESSES,
        |_| (),
        |_| {
            let this = Filter::builder().name("allocation-id").values(allocation).build();
            let request = place.ec2().describe_addresses().filters(this);
            async move { Ok((list(request.send().await?.addresses, "addresses")?, None)) }
        },
    );
    let records: Vec<types::Address> = addresses.await?;
    let record = records.iter().find(|record| record.allocation_id() == Some(allocation));
    record.map(|record| parse::address(scope, record)).transpose().map_err(|why| Refused::malformed(why).why)
}

/// Reads one address; none if the account does not have it any more. Three calls. What lists do not tell is *unknown* where it could not be read.
///
/// # Errors
/// What could not be read, and why.
pub async fn one_address(accounts: &Accounts, scope: &Scope, allocation: &str) -> Result<Option<OneAddress>, Failure> {
    let place = place(accounts, scope)?;
    let (address, reverse_name, offered_to) = futures::join!(
        address(accounts, scope, allocation),
        reverse_name(&place, allocation),
        offered_to(&place, allocation)
    );
    let told = |call: Api, read: Result<Option<String>, Failure>| match read {
        Ok(None) => Told::Nothing,
        Ok(Some(what)) => Told::Something { what },
        Err(why) => Told::Unknown { why: format!("{}: {why}", call.name) },
    };
    Ok(address?.map(|address| OneAddress {
        address,
        reverse_name: told(ATTRIBUTE, reverse_name),
        offered_to: told(TRANSFERS, offered_to),
    }))
}

/// The name that somebody has had set, or has asked for.
async fn reverse_name(place: &Place, allocation: &str) -> Result<Option<String>, Failure> {
    let attributes = place.pages(
        ATTRIBUTE,
        |_| (),
        |token| {
            let request = place.ec2().describe_addresses_attribute().allocation_ids(allocation);
            let request = request.attribute(AddressAttributeName::DomainName).set_next_token(token);
            async move {
                let page = request.send().await?;
                Ok((list(page.addresses, "attributes of addresses")?, page.next_token))
            }
        },
    );
    let attributes: Vec<types::AddressAttribute> = attributes.await?;
    let of_it = attributes.iter().filter(|one| one.allocation_id() == Some(allocation));
    let names = of_it.flat_map(|one| {
        let asked_for = one.ptr_record_update().and_then(types::PtrUpdateStatus::value);
        [one.ptr_record(), asked_for].into_iter().flatten()
    });
    Ok(names.filter(|name| is_set(name)).map(str::to_owned).next())
}

fn is_set(name: &str) -> bool {
    let name = name.trim().trim_end_matches('.').to_ascii_lowercase();
    !name.is_empty() && !OWN_NAMES.iter().any(|own| name.ends_with(own))
}

/// The account that may take it. All offers of the region are asked for: EC2 does not say what it answers about an address that was never offered.
async fn offered_to(place: &Place, allocation: &str) -> Result<Option<String>, Failure> {
    let transfers = place.pages(
        TRANSFERS,
        |_| (),
        |token| {
            let request = place.ec2().describe_address_transfers().max_results(1_000).set_next_token(token);
            async move {
                let page = request.send().await?;
                Ok((list(page.address_transfers, "offers of addresses")?, page.next_token))
            }
        },
    );
    let transfers: Vec<types::AddressTransfer> = transfers.await?;
    let is_open = |one: &&types::AddressTransfer| {
        one.allocation_id() == Some(allocation)
            && one.address_transfer_status() != Some(&AddressTransferStatus::Disabled)
    };
    let to = |one: &types::AddressTransfer| one.transfer_account_id().unwrap_or("that EC2 does not name").to_owned();
    Ok(transfers.iter().find(is_open).map(to))
}

#[cfg(test)]
mod tests {
    use super::is_set;

    #[test]
    fn a_name_is_set_by_whoever_has_the_address_and_not_by_ec2() {
        assert!(is_set("mx.example.com.") && is_set("amazonaws.com.example.com"));
        for own in [
            "",
            " ",
            ".",
            "ec2-203-0-113-8.eu-central-1.compute.amazonaws.com.",
            "ec2-203-0-113-8.compute-1.AMAZONAWS.com",
        ] {
            assert!(!is_set(own), "{own}");
        }
    }
}
