import CMicroHTTPD
import SluiceCommand

/// A line of a response's head.
struct HTTPHeader: Hashable, Sendable {
  var name: String
  var value: String

  init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}

/// A complete response.
struct HTTPResponse: Hashable, Sendable {
  var status: Int
  var headers: [HTTPHeader]
  var body: [UInt8]
  /// Whether the connection is closed afterwards.
  var closes = false

  init(status: Int = 200, type: String, body: [UInt8]) {
    self.status = status
    self.body = body
    headers = [HTTPHeader("Content-Type", type)]
  }

  static func json(_ json: JSON, status: Int = 200) -> HTTPResponse {
    HTTPResponse(status: status, type: "application/json; charset=utf-8", body: Array(json.line.utf8))
  }

  static func text(_ text: String, status: Int = 200) -> HTTPResponse {
    HTTPResponse(status: status, type: "text/plain; charset=utf-8", body: Array("\(text)\n".utf8))
  }

  /// The headers of every response: no caching, no guessing of types, no use by other sites.
  static let common = [
    HTTPHeader("Cache-Control", "no-store"),
    HTTPHeader("X-Content-Type-Options", "nosniff"),
    HTTPHeader("Cross-Origin-Resource-Policy", "same-origin"),
    HTTPHeader("Referrer-Policy", "no-referrer"),
    HTTPHeader("X-Frame-Options", "DENY"),
  ]

  /// The policy of responses other than the page: a browser that shows them runs nothing.
  static let noContentPolicy = HTTPHeader(
    "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
}

/// Takes requests from the library.
enum HTTPInput {
  /// The lines of a request's head, in their order.
  static func fields(of connection: OpaquePointer) -> [HTTPHeader] {
    var fields: [HTTPHeader] = []
    unsafe withUnsafeMutablePointer(to: &fields) { target in
      unsafe sluice_http_each_field(connection, target) { target, name, value in
        let name = unsafe name.map { unsafe String(cString: $0) } ?? ""
        let value = unsafe value.map { unsafe String(cString: $0) } ?? ""
        unsafe target!.assumingMemoryBound(to: [HTTPHeader].self).pointee.append(HTTPHeader(name, value))
      }
    }
    return fields
  }
}

/// Hands responses to the library.
enum HTTPOutput {
  /// Fills a buffer: how many bytes, 0 for none now, nil at the end.
  typealias Reader = (UnsafeMutableRawBufferPointer) -> Int?

  @safe
  private final class Body {
    let read: Reader

    init(_ read: @escaping Reader) {
      unsafe self.read = unsafe read
    }
  }

  private static let chunk = 16 << 10

  /// - Returns: false when it can't be sent; the connection must be closed then.
  static func send(_ response: HTTPResponse, on connection: OpaquePointer, closes: Bool) -> Bool {
    var body = response.body
    let made = unsafe body.withUnsafeMutableBytes {
      unsafe sluice_http_response($0.count, $0.baseAddress)
    }
    guard let made = unsafe made else { return false }
    defer { unsafe MHD_destroy_response(made) }
    unsafe add(HTTPResponse.common, to: made)
    unsafe add(response.headers, to: made)
    if !response.headers.contains(where: { $0.name == HTTPResponse.noContentPolicy.name }) {
      unsafe add([HTTPResponse.noContentPolicy], to: made)
    }
    if closes { unsafe add([HTTPHeader("Connection", "close")], to: made) }
    return unsafe sluice_http_respond(connection, UInt32(response.status), made) != 0
  }

  /// Sends events as they come.
  ///
  /// - Parameter read: called on the loop; when it returns 0 the connection must have been suspended.
  static func stream(on connection: OpaquePointer, _ read: @escaping Reader) -> Bool {
    let body = unsafe Unmanaged.passRetained(Body(read))
    let made = unsafe MHD_create_response_from_callback(
      sluice_http_unknown_size, chunk,
      { context, _, buffer, size in
        let body = unsafe Unmanaged<Body>.fromOpaque(context!).takeUnretainedValue()
        let count = unsafe body.read(UnsafeMutableRawBufferPointer(start: buffer, count: size))
        return count ?? sluice_http_end_of_stream
      }, body.toOpaque(), { unsafe Unmanaged<Body>.fromOpaque($0!).release() })
    guard let made = unsafe made else {
      unsafe body.release()
      return false
    }
    defer { unsafe MHD_destroy_response(made) }
    unsafe add(HTTPResponse.common + [HTTPResponse.noContentPolicy], to: made)
    unsafe add([HTTPHeader("Content-Type", "text/event-stream; charset=utf-8")], to: made)
    return unsafe sluice_http_respond(connection, 200, made) != 0
  }

  private static func add(_ headers: [HTTPHeader], to response: OpaquePointer) {
    for header in headers { unsafe _ = MHD_add_response_header(response, header.name, header.value) }
  }
}
