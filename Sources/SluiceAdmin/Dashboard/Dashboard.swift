import SluiceAccess
import SluiceTLS

/// The page about the broker: one document with its style and script in it, which fetches only this listener's own events and records.
///
/// Its parts are the files beside this one, which the build embeds in the module. The style and the script replace their references in `dashboard.html`; the
/// script's parts are joined in the order below. The script inserts all data of the broker into the page as text, never as markup.
enum Dashboard {
  /// The page, with a policy that contains the hashes of the style and the script: a browser runs no others.
  static let response: HTTPResponse = {
    let style = "\n" + text(PackageResources.dashboard_css) + text(PackageResources.narrow_css)
    let script = "\n(() => {\n\"use strict\";\n" + parts.map(text).joined(separator: "\n") + "})();\n"
    let page = text(PackageResources.dashboard_html)
      .replacing("<link rel=\"stylesheet\" href=\"dashboard.css\">", with: "<style>\(style)</style>")
      .replacing("<script src=\"dashboard.js\"></script>", with: "<script>\(script)</script>")
    var response = HTTPResponse(type: "text/html; charset=utf-8", body: Array(page.utf8.dropLast()))
    response.headers.append(
      HTTPHeader(
        HTTPResponse.noContentPolicy.name,
        "default-src 'none'; script-src \(hash(script)); style-src \(hash(style)); connect-src 'self'; img-src data:; "
          + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"))
    return response
  }()

  /// The page for a visitor that may make changes, with its token.
  static func response(for identity: Identity, _ check: ActionCheck) -> HTTPResponse {
    var response = response
    let page = String(decoding: response.body, as: UTF8.self)
    let empty = "<meta name=\"sluice-token\" content=\"\">"
    response.body = Array(
      page.replacing(empty, with: "<meta name=\"sluice-token\" content=\"\(check.token(of: identity))\">")
        .utf8)
    return response
  }

  /// The parts of the script. A part that uses another one while it is loaded follows that one.
  private static var parts: [[UInt8]] {
    [
      PackageResources.elements_js,
      PackageResources.actions_js,
      PackageResources.numbers_js,
      PackageResources.lines_js,
      PackageResources.samples_js,
      PackageResources.figures_js,
      PackageResources.holds_js,
      PackageResources.problems_js,
      PackageResources.topics_js,
      PackageResources.streams_js,
      PackageResources.settings_js,
      PackageResources.topic_js,
      PackageResources.records_js,
      PackageResources.tail_js,
      PackageResources.charts_js,
      PackageResources.consumers_js,
      PackageResources.connections_js,
      PackageResources.users_js,
      PackageResources.cluster_js,
      PackageResources.storage_js,
      PackageResources.places_js,
      PackageResources.stream_js,
    ]
  }

  private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

  private static func hash(_ text: String) -> String {
    // Base 64 of 32 bytes ends with one padding character.
    "'sha256-\(Base64Text.standard.encode(sha256(Array(text.utf8))))='"
  }
}
