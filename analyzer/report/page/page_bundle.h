/* Scripts and styles of page/, bundled by the build (scripts/page-bundle). If npm's packages were missing then,
 * page_script is empty, and a page has only its verdict and text. Hashes are for a Content-Security-Policy: SHA-256 in
 * base64. */
#ifndef MT_REPORT_PAGE_PAGE_BUNDLE_H
#define MT_REPORT_PAGE_PAGE_BUNDLE_H

extern const char page_script[], page_style[], page_script_hash[], page_style_hash[];

#endif
