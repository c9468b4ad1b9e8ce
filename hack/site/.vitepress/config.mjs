// The site is the Markdown of the repository as it is: README.md, CHANGELOG.md, docs and examples, which build.sh puts beside this folder.
// Its table of contents is that of docs/README.md, so that there is one.
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, posix, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitepress'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..')
const contents = readFileSync(join(root, 'docs/index.md'), 'utf8')

// sections returns the bold headings of docs/README.md, with the links below each.
function sections() {
  const out = []
  for (const line of contents.split('\n')) {
    const heading = line.match(/^\*\*(.+)\*\*$/)
    if (heading) out.push({ text: heading[1], collapsed: false, items: [] })
    if (out.length === 0) continue
    for (const [, text, to] of line.matchAll(/\[([^\]]+)\]\(([^)#]+)(?:#[^)]*)?\)/g)) {
      const path = posix.normalize(posix.join('docs', to))
      if (path.endsWith('.md')) out.at(-1).items.push({ text, link: '/' + path })
    }
  }
  return out
}

const repository = 'https://github.com/chandler-hub/chandler/blob/main/'

export default defineConfig({
  title: 'Chandler',
  description: 'Add-ons for Kubernetes fleets: label a cluster, and Flux brings them',
  outDir: resolve(root, '../site'),
  base: process.env.SITE_BASE ?? '/',
  cleanUrls: true,
  lastUpdated: false,
  // The pages have no HTML, and words such as <name> or {{ }} are meant as they stand.
  markdown: {
    html: false,
    config: (md) => {
      for (const kind of ['text', 'code_inline']) md.renderer.rules[kind] = plain(md.renderer.rules[kind])
      md.core.ruler.push('files', files)
    }
  },
  vite: { build: { chunkSizeWarningLimit: 8192 } }, // in kB: the index of the search is one file
  themeConfig: {
    search: { provider: 'local' },
    sidebar: sections(),
    outline: 'deep',
    docFooter: { prev: false, next: false }
  },
  buildEnd(site) {
    // llms.txt names each page, as Markdown: https://llmstxt.org
    const pages = sections().map((s) => `## ${s.text}\n\n` + s.items.map((i) => `- [${i.text}](${site.site.base}${i.link.slice(1)})`).join('\n'))
    writeFileSync(join(site.outDir, 'llms.txt'), `# ${site.site.title}\n\n> ${site.site.description}\n\n${pages.join('\n\n')}\n`)
    for (const page of site.pages) copyFileSync(join(root, page), join(site.outDir, page))
  }
})

// files has links to what is no page, such as a folder of examples, lead to the repository.
function files(state) {
  for (const token of state.tokens.flatMap((t) => t.children ?? [])) {
    const to = token.type === 'link_open' ? token.attrGet('href') : null
    if (!to || /^[a-z]+:|^#/.test(to)) continue
    const path = posix.normalize(posix.join(posix.dirname(state.env.relativePath), to))
    if (/\.md(#|$)/.test(path) && existsSync(join(root, path.replace(/#.*/, '')))) continue
    token.attrSet('href', repository + path.replace('/index.md', '/README.md'))
  }
}

// plain has Vue leave a text alone.
function plain(rule) {
  return (...args) => {
    const out = rule(...args)
    return out.includes('{{') ? `<span v-pre>${out}</span>` : out
  }
}
