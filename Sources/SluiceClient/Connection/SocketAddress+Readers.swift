import Glibc
import SluiceIO

extension SocketAddress {
  /// Whether what is sent there may be read by others: it leaves the machine without TLS.
  var isReadByOthers: Bool {
    guard case .host(let host, _) = self else { return false }
    return !Self.isThisMachine(host)
  }

  /// Of names only `localhost`: nobody has looked up the others yet.
  private static func isThisMachine(_ host: String) -> Bool {
    var four = in_addr()
    if unsafe inet_pton(AF_INET, host, &four) == 1 { return UInt32(bigEndian: four.s_addr) >> 24 == 127 }
    var six = [UInt8](repeating: 0, count: 16)
    guard unsafe inet_pton(AF_INET6, host, &six) == 1 else { return host.lowercased() == "localhost" }
    let isMapped = six[..<10].allSatisfy { $0 == 0 } && six[10] == 0xFF && six[11] == 0xFF
    return isMapped ? six[12] == 127 : six[..<15].allSatisfy { $0 == 0 } && six[15] == 1
  }
}

extension ClientError {
  static func readByOthers(at address: SocketAddress) -> ClientError {
    ClientError(
      .insecureConnection,
      "the client's credentials weren't sent to \(address), since others on the way could read them; use tls://, or allow it explicitly"
    )
  }
}
