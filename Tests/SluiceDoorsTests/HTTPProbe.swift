import SluiceHTTP
import SluiceWire
import TestSupport

@testable import SluiceDoors

/// Passes arbitrary bytes to all code that reads HTTP requests.
enum HTTPProbe: Probe {
  enum Target: String, CaseIterable, Sendable {
    /// A byte that selects how to split the stream, then the stream: requests with their bodies.
    case httpRequests
  }

  static func run(_ target: Target, on input: [UInt8]) throws {
    var input = ProbeInput(input)
    let step = max(1, Int(input.byte()))
    let stream = input.remaining()
    let whole = try outcome([stream])
    let cut = try outcome(
      stride(from: 0, to: stream.count, by: step).map { Array(stream[$0..<min($0 + step, stream.count)]) })
    guard whole == cut else { throw ProbeViolation("cut every \(step) bytes: \(cut) instead of \(whole)") }
  }

  /// The result of reading the chunks on a connection: a line for each request, and the problem that ends it.
  private static func outcome(_ chunks: [[UInt8]]) throws -> [String] {
    var lines: [String] = []
    var (reader, request) = (HTTPRequestReader(), HTTPRequest?.none)
    var given = 0
    for chunk in chunks {
      given += chunk.count
      var rest = chunk[...]
      do throws(HTTPProblem) {
        while !rest.isEmpty {
          let (event, taken) = try reader.take(Array(rest)[...])
          rest = rest.dropFirst(taken)
          var body: [UInt8]?
          switch event {
          case .head(let head):
            request = head
            if try reader.beginBody(of: head) { body = [] }
          case .body(let bytes): body = bytes
          case nil: break
          }
          guard let body else { continue }
          request?.body = body
          if let request { lines.append(describe(request)) }
          (reader, request) = (HTTPRequestReader(), nil)
        }
      } catch {
        return lines + ["\(error.status) \(error.message)"]
      }
      guard reader.heldBytes <= 32_768 + given else {
        throw ProbeViolation("\(reader.heldBytes) bytes are held of \(given)")
      }
    }
    return lines
  }

  /// All values that are read from a request, or the problem with each.
  private static func describe(_ request: HTTPRequest) -> String {
    func told(_ body: () throws -> Any?) -> String {
      do {
        return try body().map { "\($0)" } ?? "nil"
      } catch let problem as HTTPProblem {
        return "\(problem.status) \(problem.message)"
      } catch {
        return "\(error)"
      }
    }
    let parts: [String] = [
      request.head.method, "\(request.path)", "\(request.body.count)", told { try request.start() },
      told { try request.count() }, told { try request.filter() }, told { try request.acknowledgement() },
      told { try request.key() },
      told { try HTTPResumption(request) }, told { try request.credentials() },
      told { try request.duration("wait") }, told { try request.settings() }, "\(request.keepsAlive)",
      told { try HTTPGroupSettling.offsets(request.body) },
      told { try HTTPPublishing.batch(of: request).count },
    ]
    return parts.joined(separator: " ")
  }
}
