import SluiceHTTP

/// Finds heads that HTTP forbids and that the library passes on (RFC 9112, 3.2, 5.1 and 6.3).
///
/// A proxy in front may take such a request for another one than this listener does. So its connection ends after the answer.
enum RequestHead {
  /// - Parameter fields: the lines of a head, in their order.
  /// - Returns: why the head is refused; nil for one that is allowed.
  static func fault(in fields: [HTTPHeader]) -> AdminProblem? {
    if let field = fields.first(where: { !HTTPRequestHead.isToken($0.name[...]) }) {
      return .badRequest(
        "'\(field.name)' isn't the name of a header: it has letters, digits and a few signs, and no space before the colon"
      )
    }
    func count(_ name: String) -> Int { fields.count { $0.name.lowercased() == name } }
    for name in ["Host", "Content-Length", "Transfer-Encoding"] where count(name.lowercased()) > 1 {
      return .badRequest("the header \(name) is there twice; a request has it once")
    }
    if count("content-length") > 0, count("transfer-encoding") > 0 {
      return .badRequest("the request has both Content-Length and Transfer-Encoding; send one of them")
    }
    return nil
  }
}
