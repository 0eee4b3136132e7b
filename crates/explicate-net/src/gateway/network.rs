//! Networks in CIDR notation, and the most specific one of several.

use std::net::IpAddr;

use serde::Deserialize;

/// A network in CIDR notation (RFC 4632).
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(try_from = "String")]
pub struct Network {
    /// Its first address.
    pub address: IpAddr,
    /// Length of its prefix.
    pub prefix: u8,
}

impl TryFrom<String> for Network {
    type Error = String;
    fn try_from(text: String) -> std::result::Result<Network, String> {
        let wrong = || format!("`{text}` is no network; write it like 10.1.0.0/16 or fd00:1::/48");
        let (address, prefix) = text.split_once('/').ok_or_else(wrong)?;
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let prefix: u8 = prefix.parse().map_err(|_| wrong())?;
        let network = Network { address, prefix };
        if prefix > network.bits() {
            return Err(wrong());
        }
        if network.masked(address) != address {
            return Err(format!(
                "`{text}`: bits behind the prefix are set; the network is {}/{prefix}",
                network.masked(address)
            ));
        }
        Ok(network)
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl Network {
    fn bits(&self) -> u8 {
        if self.address.is_ipv4() { 32 } else { 128 }
    }
    fn masked(&self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(ip) => {
                IpAddr::V4((u32::from(ip) & u32::MAX.checked_shl(32 - self.prefix as u32).unwrap_or(0)).into())
            }
            IpAddr::V6(ip) => {
                IpAddr::V6((u128::from(ip) & u128::MAX.checked_shl(128 - self.prefix as u32).unwrap_or(0)).into())
            }
        }
    }
    /// Whether all of it lies in another one.
    pub fn is_within(&self, other: &Network) -> bool {
        self.prefix >= other.prefix && other.contains(self.address)
    }
    /// Whether an address is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && self.masked(address) == self.address
    }
}

/// The most specific of these networks that contains an address.
pub fn longest<'a>(networks: impl IntoIterator<Item = (usize, &'a Network)>, address: IpAddr) -> Option<usize> {
    let holding = networks.into_iter().filter(|(_, network)| network.contains(address));
    holding.max_by_key(|(_, network)| network.prefix).map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        Network::try_from(text.to_string()).unwrap()
    }

    #[test]
    fn a_network_holds_its_addresses_and_smaller_networks() {
        let wide = network("10.2.0.0/15");
        let holds = |address: &str| wide.contains(address.parse().unwrap());
        assert_eq!(["10.2.0.0", "10.3.255.255", "10.4.0.0", "::ffff:10.2.0.1"].map(holds), [true, true, false, false]);
        let within = |text: &str| network(text).is_within(&wide);
        assert_eq!(["10.3.0.0/16", "10.2.0.0/15", "10.0.0.0/8", "::/0"].map(within), [true, true, false, false]);
        assert!(network("fd00::/8").is_within(&network("::/0")) && network("0.0.0.0/0").contains([1, 2, 3, 4].into()));
    }

    #[test]
    fn of_several_the_most_specific_one_is_found() {
        let known = ["0.0.0.0/0", "10.2.0.0/16", "10.0.0.0/8"].map(network);
        let find = |address: &str| longest(known.iter().enumerate(), address.parse().unwrap());
        assert_eq!(["10.2.3.4", "10.3.0.1", "9.9.9.9", "::1"].map(find), [Some(1), Some(2), Some(0), None]);
    }
}
