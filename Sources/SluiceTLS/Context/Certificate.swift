import COpenSSL
import Glibc

/// A peer's certificate, kept alive by this.
///
/// Unchecked: OpenSSL counts references atomically, and nothing here changes the certificate.
@safe
final class Certificate: @unchecked Sendable {
  let pointer: OpaquePointer

  /// Takes over a reference.
  init(_ pointer: OpaquePointer) {
    unsafe self.pointer = unsafe pointer
  }

  /// Takes a reference of its own.
  init(sharing pointer: OpaquePointer) {
    unsafe X509_up_ref(pointer)
    unsafe self.pointer = unsafe pointer
  }

  deinit {
    unsafe X509_free(pointer)
  }

  /// The peer's, when it has shown one.
  static func peer(of ssl: OpaquePointer) -> Certificate? {
    unsafe SSL_get1_peer_certificate(ssl).map { unsafe Certificate($0) }
  }

  /// When it ends, in milliseconds since 1970. Nil when that can't be read.
  var expires: Int64? {
    unsafe Self.expiry(pointer)
  }

  static func expiry(_ certificate: OpaquePointer) -> Int64? {
    var parts = unsafe tm()
    guard let end = unsafe X509_get0_notAfter(certificate), unsafe ASN1_TIME_to_tm(end, &parts) == 1 else {
      return nil
    }
    let (milliseconds, overflow) = unsafe Int64(timegm(&parts)).multipliedReportingOverflow(by: 1_000)
    return overflow ? nil : milliseconds
  }

  /// The name in it: the first DNS name, e-mail address or URI among its alternative names; without any of them, its common name.
  ///
  /// - Throws: ``Unusable`` when that isn't a name that a person could read, or a program compare.
  func name() throws(Unusable) -> String? {
    if let names = unsafe sluice_x509_alternative_names(pointer) {
      defer { unsafe GENERAL_NAMES_free(names) }
      for index in unsafe 0..<sluice_general_names_count(names) {
        var kind: Int32 = 0
        guard let string = unsafe sluice_general_name(names, index, &kind), kind != GEN_IPADD else {
          continue
        }
        return unsafe try Self.checked(string)
      }
    }
    guard let subject = unsafe X509_get_subject_name(pointer) else { return nil }
    let index = unsafe X509_NAME_get_index_by_NID(subject, NID_commonName, -1)
    guard index >= 0, let entry = unsafe X509_NAME_get_entry(subject, index),
      let string = unsafe X509_NAME_ENTRY_get_data(entry)
    else { return nil }
    return unsafe try Self.checked(UnsafePointer(string))
  }

  /// A name that isn't one.
  struct Unusable: Error {}

  /// The longest name that is taken, in bytes; a DNS name has 253 at most.
  private static let longestName = 512

  private static func checked(_ string: UnsafePointer<ASN1_STRING>) throws(Unusable) -> String {
    var text: UnsafeMutablePointer<UInt8>?
    let length = unsafe ASN1_STRING_to_UTF8(&text, string)
    guard length >= 0, let text = unsafe text else { throw Unusable() }
    defer { unsafe CRYPTO_free(text, nil, 0) }
    let bytes = unsafe UnsafeBufferPointer(start: text, count: Int(length))
    // A zero byte or a line break in a name has no honest use.
    guard !bytes.isEmpty, bytes.count <= longestName, unsafe bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }),
      let name = unsafe String(validating: bytes, as: UTF8.self)
    else { throw Unusable() }
    return name
  }

  /// All hosts that it is for, for messages: `localhost, 127.0.0.1`; at most ten.
  var hosts: String {
    guard let names = unsafe sluice_x509_alternative_names(pointer) else { return "" }
    defer { unsafe GENERAL_NAMES_free(names) }
    var hosts: [String] = []
    for index in unsafe 0..<sluice_general_names_count(names) where hosts.count < 10 {
      var kind: Int32 = 0
      guard let string = unsafe sluice_general_name(names, index, &kind) else { continue }
      if kind == GEN_DNS, let name = try? unsafe Self.checked(string) { hosts.append(name) }
      if kind == GEN_IPADD, let address = unsafe Self.address(string) { hosts.append(address) }
    }
    return hosts.joined(separator: ", ")
  }

  private static func address(_ string: UnsafePointer<ASN1_STRING>) -> String? {
    let length = unsafe ASN1_STRING_length(string)
    guard let data = unsafe ASN1_STRING_get0_data(string), length == 4 || length == 16 else { return nil }
    return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { buffer in
      let family = length == 4 ? AF_INET : AF_INET6
      guard unsafe inet_ntop(family, data, buffer.baseAddress, socklen_t(buffer.count)) != nil else {
        return nil
      }
      return unsafe String(cString: buffer.baseAddress!)
    }
  }
}
