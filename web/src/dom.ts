// Elements in one expression.

type Child = Node | string | null;

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children.filter((child) => child !== null));
  return node;
}

// A row of buttons of which one is pressed.
export function choice<T extends string>(
  label: string,
  options: readonly { value: T; text: string }[],
  selected: T,
  choose: (value: T) => void,
): HTMLElement {
  const buttons = options.map(({ value, text }) => {
    const button = element("button", { type: "button", "data-value": value }, text);
    button.setAttribute("aria-pressed", String(value === selected));
    button.addEventListener("click", () => {
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      choose(value);
    });
    return button;
  });
  return element("div", { class: "choice", role: "group", "aria-label": label }, ...buttons);
}
