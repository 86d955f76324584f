import SluiceIO

/// A request as it came, as far as it matters here.
struct AdminRequest: Sendable {
  var method = "GET"
  /// The path and what follows it, as they were sent.
  var target = "/"
  var host: String?
  var origin: String?
  /// `Sec-Fetch-Site`: where a browser says that the request comes from.
  var fetchSite: String?
  var authorization: String?
  var accept: String?
  /// Whether more than a head comes, or may come.
  var hasBody = false
  var peer = SocketAddress.unix("")
}
